package etcd

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// keyBucket is where etcd keeps the values of all keys, by their revisions.
var keyBucket = []byte("key")

// Value reads what a key held last in a snapshot that nobody else uses, without a member that runs; nil where it held nothing.
func Value(path, key string) (value []byte, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("while reading the snapshot %s of etcd: %w", path, err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) (err error) {
		value, err = lastValue(tx.Bucket(keyBucket), []byte(key))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("while reading %s in the snapshot %s of etcd: %w", key, path, err)
	}
	return value, nil
}

// lastValue goes back from the last revision. Where the key was deleted, its last entry has no value.
func lastValue(all *bbolt.Bucket, key []byte) ([]byte, error) {
	if all == nil {
		return nil, nil
	}
	entries := all.Cursor()
	for revision, text := entries.Last(); revision != nil; revision, text = entries.Prev() {
		if !bytes.Contains(text, key) {
			continue // most are of other keys, and need not be read
		}
		var entry mvccpb.KeyValue
		if err := entry.Unmarshal(text); err != nil {
			return nil, err
		}
		if bytes.Equal(entry.Key, key) {
			return entry.Value, nil
		}
	}
	return nil, nil
}
