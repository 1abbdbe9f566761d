// Package argocd holds what tells Argo CD how objects of holdfast.io are.
package argocd

//go:generate go run ./internal/configmap argocd-cm.yaml

import (
	_ "embed"
	"fmt"
	"strings"
)

// Health is the script that Argo CD asks how an object is.
//
//go:embed health.lua
var Health string

// Kinds are those that it is asked of: all that have the condition Ready.
var Kinds = []string{
	"Action", "Client", "Daemon", "DriveGroup", "Filesystem", "Host", "NFSExport", "ObjectStore", "ObjectStoreUser", "Pool",
	"RBDMirror", "StorageCluster", "StorageNode", "Volume",
}

// ConfigMap is what is merged into Argo CD's own ConfigMap.
func ConfigMap() string {
	var b strings.Builder
	b.WriteString(`# Made by 'make generate' from health.lua. Do not edit.
# kubectl patch configmap argocd-cm -n argocd --patch-file argocd-cm.yaml
data:
`)
	script := strings.ReplaceAll(strings.TrimSpace(Health), "\n", "\n    ")
	for _, kind := range Kinds {
		fmt.Fprintf(&b, "  resource.customizations.health.holdfast.io_%s: |\n    %s\n", kind, script)
	}
	return strings.ReplaceAll(b.String(), "\n    \n", "\n\n")
}
