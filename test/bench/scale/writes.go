package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/holdfast-storage/holdfast/test/loopback"
)

// Kinds of writes that are told apart from others of their objects.
const (
	// dueWrites are those of a cluster's status.nextOrchestration and nothing else.
	dueWrites = "storageclusters: status.nextOrchestration"
	// lockWrites are those of the leases by which an orchestration has its cluster for itself, and of their terms.
	lockWrites = "locks of clusters"
	// termWrites are those of the other terms, such as the leader's own.
	termWrites = "terms"
	// reportWrites are those of nothing but a host's status. Its agent writes that, and the leader whether the agent is heard, but no
	// orchestration does. All simulated hosts see what comes and goes on this machine, such as addresses and other daemons of Ceph.
	reportWrites = "hosts: status"
)

// writes counts what is written to etcd for some time, whoever writes it, by kind.
func (s *server) writes(ctx context.Context, d time.Duration) (map[string]int, error) {
	port, err := strconv.Atoi(s.ports[2])
	if err != nil {
		return nil, err
	}
	etcd, err := loopback.DialEtcd(within(s.dir, "server"), port)
	if err != nil {
		return nil, err
	}
	defer etcd.Close()
	watching, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	found := map[string]int{}
	for answer := range etcd.Watch(watching, "", clientv3.WithPrefix(), clientv3.WithPrevKV()) {
		if err := answer.Err(); err != nil {
			return nil, fmt.Errorf("while watching etcd: %w", err)
		}
		for _, e := range answer.Events {
			found[kindOfWrite(e)]++
		}
	}
	return found, ctx.Err()
}

// kindOfWrite is the resource of what was written, or the key of what is no object.
func kindOfWrite(e *clientv3.Event) string {
	key := string(e.Kv.Key)
	parts := strings.Split(strings.TrimPrefix(key, "/registry/"), "/")
	if strings.Contains(parts[0], ".") && len(parts) > 1 { // the group
		parts = parts[1:]
	}
	switch kind, name := parts[0], parts[len(parts)-1]; {
	case strings.HasPrefix(name, "orchestrate-"):
		return lockWrites
	case strings.HasPrefix(key, "/holdfast/fence/"):
		return termWrites
	case !strings.HasPrefix(key, "/registry/"):
		return key
	case kind == "storageclusters" && onlyDiffersIn(e, "status", "nextOrchestration"):
		return dueWrites
	case kind == "hosts" && onlyDiffersIn(e, "status"):
		return reportWrites
	default:
		return kind
	}
}

// onlyDiffersIn says whether an object was changed in nothing but a field. The record of who manages which field is part of
// each write: it has its time.
func onlyDiffersIn(e *clientv3.Event, field ...string) bool {
	if !e.IsModify() || e.PrevKv == nil {
		return false
	}
	var versions [2]map[string]any
	for i, data := range [][]byte{e.PrevKv.Value, e.Kv.Value} {
		if json.Unmarshal(data, &versions[i]) != nil {
			return false
		}
		unstructured.RemoveNestedField(versions[i], field...)
		unstructured.RemoveNestedField(versions[i], "metadata", "managedFields")
	}
	return reflect.DeepEqual(versions[0], versions[1])
}
