// Command cluster keeps a Kubernetes of three nodes on this machine, for people: 'make kube-up' and
// 'make kube-down'.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/kube"
)

// dir is where everything of the cluster lies.
const dir = "/var/tmp/holdfast-kube"

const usage = `usage: kube-cluster up     make three nodes
       kube-cluster down   remove everything again`

func main() {
	hosts.MaybeInit()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kube-cluster:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "up":
		return up()
	case len(args) == 1 && args[0] == "down":
		return down()
	}
	return errors.New(usage)
}

func up() error {
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("the cluster is there already (%s): remove it first with 'sudo make kube-down'", dir)
	}
	err := hosts.Script(os.Stdout, show)
	if err != nil {
		return fmt.Errorf("%w\nThe nodes stay as they are: their logs are %s/h*/logs. "+
			"Remove them with 'sudo make kube-down'", err, dir)
	}
	return nil
}

func show(t hosts.T) {
	start := time.Now()
	k := kube.New(t, kube.Options{Nodes: 3, Disks: 1, Dir: dir, Keep: true})
	fmt.Println(k.Kubectl(t, "get", "nodes", "-o", "wide"))
	if err := giveTo(k.Kubeconfig, os.Getenv("SUDO_UID"), os.Getenv("SUDO_GID")); err != nil {
		t.Fatalf("while giving the kubeconfig to the user: %v", err)
	}
	bin, err := filepath.Abs(".cache/kube/bin")
	if err != nil {
		t.Fatalf("%v", err)
	}
	took := time.Since(start).Round(100 * time.Millisecond)
	fmt.Printf(whatNext, took, k.Kubeconfig, bin, kube.Image, k.DeviceFilter(), k.Node(1).PID(), dir)
}

// giveTo lets the user read a file who has called sudo, if one has.
func giveTo(path, user, group string) error {
	if user == "" {
		return nil
	}
	uid, err := strconv.Atoi(user)
	if err != nil {
		return fmt.Errorf("while reading SUDO_UID: %w", err)
	}
	gid, err := strconv.Atoi(group)
	if err != nil {
		return fmt.Errorf("while reading SUDO_GID: %w", err)
	}
	return os.Chown(path, uid, gid)
}

const whatNext = `
Ready in %[1]s. Next:

  export KUBECONFIG=%[2]s PATH=%[3]s:$PATH
  kubectl apply -f deploy/kubernetes/   # with image: %[4]s
  kubectl -n holdfast-system set env ds/holdfast-agent 'HOLDFAST_DEVICE_FILTER=%[5]s'
                                        # the nodes share a kernel: each shows its own disks
  sudo nsenter -t %[6]d -a              # a shell on the first node
  ls %[7]s/h*/logs      # what the programs of the nodes say; h4 has the control plane
  sudo make kube-down                   # remove everything
`

func down() error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		fmt.Println("there is no cluster to remove")
		return nil
	}
	return hosts.Script(os.Stdout, func(t hosts.T) {
		lab := hosts.Open(t, dir)
		if err := hosts.Destroy(dir); err != nil {
			t.Fatalf("%v", err)
		}
		lab.Leftovers(t)
		if !t.Failed() {
			fmt.Println("the cluster is removed: no process, mount, loop device, namespace, control group or file of it is left")
		}
	})
}
