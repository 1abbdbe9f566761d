// Package rbdtest is librbd with pools in memory, for tests. The suite of package rbd holds it to
// what librbd answers.
package rbdtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

// Images are those of some pools. They are safe for concurrent use.
type Images struct {
	mu    sync.Mutex
	pools map[int64]*pool
	last  int
	fail  func(prefix string) error
}

type pool struct {
	images map[string]*image
	trash  []rbd.Trashed
}

type image struct {
	size     uint64
	notes    map[string]string
	watchers []rbd.Watcher
}

// command is what package rbd asks.
type command struct {
	Prefix     string
	Pool       int64
	Image      string
	Size       uint64
	Key, Value string
}

// New returns pools of these numbers, without images.
func New(numbers ...int64) *Images {
	all := &Images{pools: map[int64]*pool{}}
	for _, n := range numbers {
		all.pools[n] = &pool{images: map[string]*image{}}
	}
	return all
}

// Fail has calls fail for which f returns an error. It is asked with the prefix of each command.
func (all *Images) Fail(f func(prefix string) error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.fail = f
}

// Watch has a client open an image; the function that it returns has it closed.
func (all *Images) Watch(number int64, name string, w rbd.Watcher) (end func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	i := all.pools[number].images[name]
	i.watchers = append(i.watchers, w)
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		i.watchers = nil
	}
}

// Names are those of the images of a pool.
func (all *Images) Names(number int64) (names []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for name := range all.pools[number].images {
		names = append(names, name)
	}
	return names
}

// EmptyTrash does what a manager does some time after it was asked for it.
func (all *Images) EmptyTrash(number int64, id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	var left []rbd.Trashed
	for _, t := range all.pools[number].trash {
		if t.ID != id {
			left = append(left, t)
		}
	}
	all.pools[number].trash = left
}

// RBD answers a command.
func (all *Images) RBD(_ context.Context, cmd any) ([]byte, error) {
	text, err := json.Marshal(cmd)
	if err != nil {
		return nil, err
	}
	var c command
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.fail != nil {
		if err := all.fail(c.Prefix); err != nil {
			return nil, err
		}
	}
	p := all.pools[c.Pool]
	if p == nil {
		return nil, syscall.ENOENT
	}
	answer, err := all.inPool(p, c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

func (all *Images) inPool(p *pool, c command) (any, error) {
	i := p.images[c.Image]
	switch {
	case c.Prefix == "rbd trash list":
		return p.trash, nil
	case c.Prefix == "rbd contents":
		var trashed []string
		for _, t := range p.trash {
			trashed = append(trashed, t.Name)
		}
		return rbd.ContentsOf(slices.Collect(maps.Keys(p.images)), trashed), nil
	case c.Prefix == "rbd create" && i != nil:
		return nil, syscall.EEXIST
	case c.Prefix == "rbd create":
		p.images[c.Image] = &image{size: c.Size, notes: map[string]string{}}
		return nil, nil
	case i == nil:
		return nil, syscall.ENOENT
	case c.Prefix == "rbd trash move", c.Prefix == "rbd remove":
		return nil, all.remove(p, i, c)
	}
	return i.answer(c)
}

func (all *Images) remove(p *pool, i *image, c command) error {
	if len(i.watchers) > 0 {
		return syscall.EBUSY
	}
	delete(p.images, c.Image)
	if c.Prefix == "rbd trash move" {
		all.last++
		p.trash = append(p.trash, rbd.Trashed{ID: fmt.Sprintf("%04x", all.last), Name: c.Image})
	}
	return nil
}

func (i *image) answer(c command) (any, error) {
	switch c.Prefix {
	case "rbd size":
		return i.size, nil
	case "rbd resize":
		if c.Size < i.size {
			return nil, syscall.EINVAL
		}
		i.size = c.Size
		return nil, nil
	case "rbd watchers":
		return i.watchers, nil
	case "rbd snapshots":
		return []rbd.Snapshot{}, nil
	case "rbd metadata get":
		if note, ok := i.notes[c.Key]; ok {
			return note, nil
		}
		return nil, nil
	case "rbd metadata set":
		i.notes[c.Key] = c.Value
		return nil, nil
	case "rbd metadata remove":
		delete(i.notes, c.Key)
		return nil, nil
	}
	return nil, errors.New(c.Prefix + " is not among what the stand-in knows")
}
