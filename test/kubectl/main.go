// Command kubectl is the real kubectl, built from its published source, so that tests need no distribution's package and
// always have the version that goes with the API machinery which Holdfast embeds.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		os.Exit(1)
	}
}
