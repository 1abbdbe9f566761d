package cephfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// The prefixes of commands to the manager.
const (
	groupCreate    = "fs subvolumegroup create"
	create         = "fs subvolume create"
	info           = "fs subvolume info"
	resize         = "fs subvolume resize"
	remove         = "fs subvolume rm"
	listMetadata   = "fs subvolume metadata ls"
	setMetadata    = "fs subvolume metadata set"
	removeMetadata = "fs subvolume metadata rm"
)

// subvolumes are those of Group in a filesystem. Where one is missing, the error is syscall.ENOENT.
type subvolumes struct {
	client rados.Client
	fs     filesystem
}

// subvolume is one of them.
type subvolume struct {
	// Path is the directory of the files. It is empty for a subvolume that is half made.
	Path string
	// Quota is zero where there is none.
	Quota int64
	// Used is how many bytes the files have.
	Used int64
}

// whole is find for calls that need the files.
func (s subvolumes) whole(ctx context.Context, name string) (subvolume, error) {
	v, err := s.find(ctx, name)
	if err == nil && v.Path == "" {
		err = status.Errorf(codes.NotFound, "subvolume %s of filesystem %s was not made to its end", name, s.fs.Name)
	}
	return v, err
}

func (s subvolumes) find(ctx context.Context, name string) (subvolume, error) {
	var answer struct {
		Path  string
		Quota json.RawMessage `json:"bytes_quota"` // a number, or "infinite"
		Used  int64           `json:"bytes_used"`
	}
	err := s.ask(ctx, info, name, nil, &answer)
	if errors.Is(err, syscall.ENODATA) {
		return s.half(ctx, name)
	}
	if err != nil {
		return subvolume{}, err
	}
	quota, _ := strconv.ParseInt(string(answer.Quota), 10, 64) // zero for the word
	return subvolume{answer.Path, quota, answer.Used}, nil
}

// half describes what a manager has left that was killed while it made a subvolume: directories
// without a layout. That they have no quota is said once more, because the answer says what they hold.
func (s subvolumes) half(ctx context.Context, name string) (subvolume, error) {
	var answer []struct {
		Used int64 `json:"bytes_used"`
	}
	err := s.ask(ctx, resize, name, map[string]any{"new_size": "infinite"}, &answer)
	if err != nil {
		return subvolume{}, err
	}
	half := subvolume{}
	for _, a := range answer {
		half.Used += a.Used
	}
	return half, nil
}

// create makes a subvolume, and the group before it where there is none.
func (s subvolumes) create(ctx context.Context, name string, bytes int64) error {
	args := map[string]any{"size": bytes, "namespace_isolated": true}
	err := s.ask(ctx, create, name, args, nil)
	if !isMissing(err) {
		return err
	}
	_, err = s.client.Mgr(ctx, map[string]any{
		"prefix": groupCreate, "vol_name": s.fs.Name, "group_name": Group, "format": "json",
	}, nil)
	if err != nil {
		return fmt.Errorf("subvolume group %s of filesystem %s: %w", Group, s.fs.Name, err)
	}
	return s.ask(ctx, create, name, args, nil)
}

// resize sets the quota. It never sets one that is below what the files have.
func (s subvolumes) resize(ctx context.Context, name string, bytes int64) error {
	return s.ask(ctx, resize, name, map[string]any{"new_size": strconv.FormatInt(bytes, 10), "no_shrink": true}, nil)
}

// remove moves a subvolume to the trash of the filesystem in a moment; the manager empties the trash.
func (s subvolumes) remove(ctx context.Context, name string) error {
	return s.ask(ctx, remove, name, nil, nil)
}

// notes are those of a subvolume.
func (s subvolumes) notes(ctx context.Context, name string) (map[string]string, error) {
	notes := map[string]string{}
	err := s.ask(ctx, listMetadata, name, nil, &notes)
	return notes, err
}

func (s subvolumes) setNote(ctx context.Context, name, key, value string) error {
	return s.ask(ctx, setMetadata, name, map[string]any{"key_name": key, "value": value}, nil)
}

// removeNote removes a note. A note that is not there is no error.
func (s subvolumes) removeNote(ctx context.Context, name, key string) error {
	err := s.ask(ctx, removeMetadata, name, map[string]any{"key_name": key}, nil)
	if isMissing(err) {
		return nil
	}
	return err
}

func (s subvolumes) ask(ctx context.Context, prefix, name string, args map[string]any, answer any) error {
	command := map[string]any{
		"prefix": prefix, "vol_name": s.fs.Name, "group_name": Group, "sub_name": name, "format": "json",
	}
	maps.Copy(command, args)
	out, err := s.client.Mgr(ctx, command, nil)
	switch {
	case err != nil:
		return fmt.Errorf("subvolume %s of filesystem %s: %w", name, s.fs.Name, err)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", prefix, err)
	}
	return nil
}

func isMissing(err error) bool { return errors.Is(err, syscall.ENOENT) }
