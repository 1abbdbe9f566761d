package rbd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
)

// Asker sends a command to librbd, as rados.ImageClient does. Its errors compare with errnos by
// errors.Is.
type Asker interface {
	RBD(ctx context.Context, command any) ([]byte, error)
}

// Pool holds images. Where an image is missing, the error is syscall.ENOENT.
type Pool struct {
	asker  Asker
	number int64
}

// In returns the pool of this number.
func In(asker Asker, number int64) *Pool { return &Pool{asker, number} }

// Create makes an image. An image of the name is there: syscall.EEXIST.
func (p *Pool) Create(ctx context.Context, image string, bytes uint64) error {
	return p.ask(ctx, command{Prefix: create, Image: image, Size: bytes}, nil)
}

// Size is the size of an image in bytes.
func (p *Pool) Size(ctx context.Context, image string) (uint64, error) {
	var bytes uint64
	err := p.ask(ctx, command{Prefix: size, Image: image}, &bytes)
	return bytes, err
}

// Grow makes an image larger, also while a client has it open. It never makes an image smaller.
func (p *Pool) Grow(ctx context.Context, image string, bytes uint64) error {
	return p.ask(ctx, command{Prefix: resize, Image: image, Size: bytes}, nil)
}

// Remove removes an image at once, also what a Create that was cut off has left. It takes as long
// as the image is large.
func (p *Pool) Remove(ctx context.Context, image string) error {
	return p.ask(ctx, command{Prefix: remove, Image: image}, nil)
}

// MoveToTrash takes an image out of its pool in a moment. A client that has the image open:
// syscall.EBUSY.
func (p *Pool) MoveToTrash(ctx context.Context, image string) error {
	return p.ask(ctx, command{Prefix: moveToTrash, Image: image}, nil)
}

// Trash lists the pool's trash.
func (p *Pool) Trash(ctx context.Context) ([]Trashed, error) {
	var all []Trashed
	err := p.ask(ctx, command{Prefix: listTrash}, &all)
	return all, err
}

// Watchers lists the clients that have an image open for writing. A client that was cut off stays
// in the list for about 30 seconds.
func (p *Pool) Watchers(ctx context.Context, image string) ([]Watcher, error) {
	var all []Watcher
	err := p.ask(ctx, command{Prefix: listWatchers, Image: image}, &all)
	return all, err
}

// Snapshots lists the snapshots of an image.
func (p *Pool) Snapshots(ctx context.Context, image string) ([]Snapshot, error) {
	var all []Snapshot
	err := p.ask(ctx, command{Prefix: listSnapshots, Image: image}, &all)
	return all, err
}

// Note reads a note from the metadata of an image. It is empty where there is none.
func (p *Pool) Note(ctx context.Context, image, key string) (string, error) {
	var value *string
	err := p.ask(ctx, command{Prefix: getMetadata, Image: image, Key: key}, &value)
	if err != nil || value == nil {
		return "", err
	}
	return *value, nil
}

// SetNote writes a note into the metadata of an image.
func (p *Pool) SetNote(ctx context.Context, image, key, value string) error {
	return p.ask(ctx, command{Prefix: setMetadata, Image: image, Key: key, Value: value}, nil)
}

// RemoveNote removes a note. A note that is not there is no error.
func (p *Pool) RemoveNote(ctx context.Context, image, key string) error {
	note, err := p.Note(ctx, image, key)
	if err != nil || note == "" {
		return err
	}
	return p.ask(ctx, command{Prefix: removeMetadata, Image: image, Key: key}, nil)
}

func (p *Pool) ask(ctx context.Context, c command, answer any) error {
	c.Pool = p.number
	out, err := p.asker.RBD(ctx, c)
	switch {
	case err != nil && c.Image == "":
		return fmt.Errorf("in pool %d: %w", p.number, err)
	case err != nil:
		return fmt.Errorf("image %s in pool %d: %w", c.Image, p.number, err)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", c.Prefix, err)
	}
	return nil
}

// IsMissing says whether an error says that there is no such image or pool.
func IsMissing(err error) bool { return errors.Is(err, syscall.ENOENT) }
