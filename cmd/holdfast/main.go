// Command holdfast runs distributed storage systems: it is the server, the agent and the client.
package main

import (
	"os"

	"github.com/holdfast-storage/holdfast/cli"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

func main() {
	rados.MaybeServe()
	os.Exit(cli.Main(os.Args[1:]))
}
