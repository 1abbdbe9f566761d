// Command kube is a whole Kubernetes and its etcd in one binary: hack/kube-tools links it to the
// name of each of its programs, and it is the one that it was called as. They come from their
// published source, as Debian has none of them but kubectl and etcd.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs are those that hack/kube-tools links; it asks for their names. The sidecars of the
// Container Storage Interface (external-provisioner, -attacher, -resizer, -snapshotter) and
// csi-sanity belong into this module too, so that all are built of the same versions. Those that
// offer no package with their command become programs of their own, as `tool` directives of go.mod.
var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	// Not to be written without the call: a nil option compiles, and panics.
	"kube-scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":        func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy":     proxy.NewProxyCommand,
	"kubectl":        kubectl.NewDefaultKubectlCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, ok := programs[name]
	switch {
	case ok && name == "kubectl":
		if err := cli.RunNoErrOutput(command()); err != nil {
			os.Exit(1)
		}
	case ok:
		os.Exit(cli.Run(command()))
	default:
		names := []string{"etcd"}
		for name := range programs {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Println(strings.Join(names, "\n"))
	}
}
