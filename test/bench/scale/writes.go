package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// createdWithin is how long etcd may take to say so.
const createdWithin = 10 * time.Second

// writes counts what is written to etcd for some time, whoever writes it, by kind. The time begins when etcd says that it is watched.
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
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := errors.New("it was watched for long enough")
	end := time.AfterFunc(createdWithin, func() { cancel(errors.New("etcd does not say that it is watched")) })
	defer func() { end.Stop() }()
	found := map[string]int{}
	for answer := range etcd.Watch(watching, "", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil && watching.Err() == nil {
			return nil, fmt.Errorf("while watching etcd: %w", err)
		}
		if answer.Created {
			end.Stop()
			end = time.AfterFunc(d, func() { cancel(over) })
		}
		for _, e := range answer.Events {
			found[kindOfWrite(e)]++
		}
	}
	if err := context.Cause(watching); !errors.Is(err, over) {
		return nil, fmt.Errorf("while watching etcd: the watch ended before its time (%w)", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return found, nil
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
