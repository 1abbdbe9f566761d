package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"

	holdfast "github.com/holdfast-storage/holdfast/internal/version"
)

// effectiveVersion tells clients which version of the Kubernetes API is spoken. The library knows the numbers, but not its
// own name: that is set when Kubernetes itself is linked, and clients cannot read what stands there otherwise.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
}

func newEffectiveVersion() basecompatibility.EffectiveVersion {
	return effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
}

// Info is what the server answers under /version.
func (v effectiveVersion) Info() *version.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = fmt.Sprintf("v%s.%s.0+holdfast", info.Major, info.Minor)
	info.GitCommit = holdfast.Version
	info.BuildDate = ""
	return info
}
