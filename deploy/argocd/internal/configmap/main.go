// Command configmap writes the ConfigMap for Argo CD.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-storage/holdfast/deploy/argocd"
)

func main() {
	if err := os.WriteFile(os.Args[1], []byte(argocd.ConfigMap()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
