package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The words of Torus's errors.
var (
	errExists = errors.New("torus: already exists")
	errNone   = errors.New("torus: no global metadata available at mds")
	errAbsent = errors.New("torus: doesn't exist")
	errLost   = errors.New("torus: non-sequential ring")
)

type globalMetadata struct{ BlockSize uint64 }

type ring struct {
	Version, Replication int
	Peers                []string
}

type peer struct {
	UUID, Address           string
	LastSeen                int64
	TotalBlocks, UsedBlocks uint64
}

type volume struct {
	Name, Type string
	ID         int
	MaxBytes   uint64
	Blocks     uint64   // that were written
	Homes      []string // the peers that were heard when they were
}

// meta is the metadata, in etcd.
type meta struct{ *clientv3.Client }

// read fills in what a key holds, and says at which revision it was changed; 0 where there is none.
func (m meta) read(key string, into any) (revision int64, err error) {
	r, err := m.Get(forever(), prefix+key)
	if err != nil || len(r.Kvs) == 0 {
		return 0, err
	}
	return r.Kvs[0].ModRevision, json.Unmarshal(r.Kvs[0].Value, into)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// put writes keys together, where the first is still at a revision.
func (m meta) put(revision int64, kv ...string) error {
	var ops []clientv3.Op
	for i := 0; i < len(kv); i += 2 {
		ops = append(ops, clientv3.OpPut(prefix+kv[i], kv[i+1]))
	}
	r, err := m.Txn(forever()).If(clientv3.Compare(clientv3.ModRevision(prefix+kv[0]), "=", revision)).Then(ops...).Commit()
	if err == nil && !r.Succeeded {
		return errExists
	}
	return err
}

func (m meta) global() (g globalMetadata, err error) {
	revision, err := m.read("meta/globalmetadata", &g)
	if err == nil && revision == 0 {
		err = errNone
	}
	return g, err
}

func (m meta) ring() (r ring, revision int64, err error) {
	revision, err = m.read("meta/the-one-ring", &r)
	return r, revision, err
}

// change writes a ring after the one that was read.
func (m meta) change(r ring, revision int64) error {
	r.Version++
	err := m.put(revision, "meta/the-one-ring", text(r))
	if errors.Is(err, errExists) {
		return errLost
	}
	return err
}

func list[T any](m meta, under string) ([]T, error) {
	r, err := m.Get(forever(), prefix+under, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var all []T
	for _, kv := range r.Kvs {
		var v T
		if err := json.Unmarshal(kv.Value, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		all = append(all, v)
	}
	return all, nil
}

func (m meta) peers() ([]peer, error) { return list[peer](m, "nodes/") }

func (m meta) volumes() ([]volume, error) { return list[volume](m, "volumeid/") }

func (m meta) volume(name string) (*volume, error) {
	all, err := m.volumes()
	if i := slices.IndexFunc(all, func(v volume) bool { return v.Name == name }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

func (m meta) create(name string, bytes uint64) error {
	have, err := m.volume(name)
	if have != nil {
		return errExists
	}
	var last int
	revision, errRead := m.read("meta/volumeminter", &last)
	if err := errors.Join(err, errRead); err != nil {
		return err
	}
	id := last + 1
	hex := strconv.FormatInt(int64(id), 16)
	return m.put(revision, "meta/volumeminter", text(id), "volumes/"+name, text(id),
		"volumeid/"+hex, text(volume{Name: name, Type: "block", ID: id, MaxBytes: bytes}), "volumemeta/"+hex+"/inode", "1")
}

func (m meta) remove(v *volume) error {
	hex := strconv.FormatInt(int64(v.ID), 16)
	_, err := m.Txn(forever()).Then(clientv3.OpDelete(prefix+"volumes/"+v.Name), clientv3.OpDelete(prefix+"volumeid/"+hex),
		clientv3.OpDelete(prefix+"volumemeta/"+hex+"/", clientv3.WithPrefix())).Commit()
	return err
}

// inUse says whether a client holds the volume's lock, which is a key with a lease.
func (m meta) inUse(v *volume) bool {
	r, err := m.Get(forever(), prefix+"volumemeta/"+strconv.FormatInt(int64(v.ID), 16)+"/blocklock")
	if err != nil {
		die("cannot delete volume: %v", err)
	}
	return len(r.Kvs) > 0
}
