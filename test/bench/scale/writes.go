package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
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
	// lockWrites are those of the leases by which an orchestration has its cluster for itself.
	lockWrites = "leases: locks of clusters"
	// foreignWrites are those of agents that see a daemon of Ceph on this machine come or go that is none of Holdfast's, and nothing else: all
	// simulated hosts see the same machine's.
	foreignWrites = "hosts: status.foreign"
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

// kindOfWrite is the resource of what was written, or where the key lies of what is no object.
func kindOfWrite(e *clientv3.Event) string {
	key := string(e.Kv.Key)
	parts := strings.Split(strings.TrimPrefix(key, "/registry/"), "/")
	if strings.Contains(parts[0], ".") && len(parts) > 1 { // the group
		parts = parts[1:]
	}
	switch kind, name := parts[0], parts[len(parts)-1]; {
	case !strings.Contains(key, "/"):
		return key
	case !strings.HasPrefix(key, "/registry/"):
		return path.Dir(key)
	case kind == "leases" && strings.HasPrefix(name, "orchestrate-"):
		return lockWrites
	case kind == "storageclusters" && onlyDiffersIn(e, "nextOrchestration"):
		return dueWrites
	case kind == "hosts" && onlyDiffersIn(e, "foreign"):
		return foreignWrites
	default:
		return kind
	}
}

// onlyDiffersIn says whether an object was changed in nothing but a field of its status. The record of who manages which field is part of
// each write: it has its time.
func onlyDiffersIn(e *clientv3.Event, field string) bool {
	if !e.IsModify() || e.PrevKv == nil {
		return false
	}
	var versions [2]map[string]any
	for i, data := range [][]byte{e.PrevKv.Value, e.Kv.Value} {
		if json.Unmarshal(data, &versions[i]) != nil {
			return false
		}
		unstructured.RemoveNestedField(versions[i], "status", field)
		unstructured.RemoveNestedField(versions[i], "metadata", "managedFields")
	}
	return reflect.DeepEqual(versions[0], versions[1])
}
