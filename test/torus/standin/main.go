// Command standin stands in for Torus (v0.1.2), which is archived and which no package carries, so
// that Holdfast's driver can be tested where nobody has its programs. It is not Torus and stores no
// data.
//
// It is called by one of three names. As torusctl and torusd it takes the arguments, prints the
// texts and ends with the exit codes that the real programs were seen to, and keeps the same keys
// in the same kind of etcd with the same leases: a peer that dies is DOWN when its lease of 30 s
// ends; one that leaves the ring is empty some seconds later; one that was away lacks what was
// written meanwhile, and gets it when it is back. No peer ever says that it moves blocks, as the
// real ones hardly do. The values of the keys are JSON, where the real ones are protobuf, and of
// the blocks there are only their numbers. As etcd it is etcd's own server and gateway.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// release is the one that it speaks like.
const release = "v0.1.2"

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcd(flags(os.Args[1:]))
	case "torusctl":
		ctl(flags(os.Args[1:]))
	case "torusd":
		daemon(flags(os.Args[1:]))
	default:
		die("%s is none of etcd, torusctl and torusd", name)
	}
}

func die(why string, args ...any) {
	fmt.Fprintf(os.Stderr, why+"\n", args...)
	os.Exit(1)
}

// line is a command line, taken apart.
type line struct {
	words []string
	flags map[string]string
}

// Flags that stand alone.
var alone = map[string]bool{"csv": true, "force": true, "all-peers": true, "no-ring": true, "version": true, "auto-join": true, "debug": true, "yes-i-am-sure": true}

func flags(args []string) line {
	l := line{flags: map[string]string{"etcd": "127.0.0.1:2379", "size": "1GiB", "block-size": "512KiB", "data-dir": "torus-data"}}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		switch {
		case args[i] == "-C":
			name = "etcd"
		case !strings.HasPrefix(args[i], "--"):
			l.words = append(l.words, args[i])
			continue
		}
		switch {
		case name == "view" || name == "si": // later builds have them
			die("Error: unknown flag: --%s", name)
		case alone[name]:
			value = "true"
		case !joined && i+1 == len(args):
			die("Error: flag needs an argument: --%s", name)
		case !joined:
			i++
			value = args[i]
		}
		l.flags[name] = value
	}
	return l
}

// prefix is before all keys.
const prefix = "/github.com/coreos/torus/"

// connect reaches the etcd. It is asked for at one address, which must be a URL.
func (l line) connect() *clientv3.Client {
	if _, err := url.Parse(l.flags["etcd"]); err != nil {
		die("invalid etcd address: %v", err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{l.flags["etcd"]}, Logger: zap.NewNop(), DialTimeout: time.Minute})
	if err != nil {
		die("couldn't connect to etcd: %v", err)
	}
	return c
}

// forever is what the real programs wait for an etcd that does not answer.
func forever() context.Context { return context.Background() }
