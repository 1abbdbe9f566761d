package rados

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Client sends commands to one cluster. It is safe for concurrent use.
//
// A command is anything that encodes as the JSON object that Ceph documents for it: at least "prefix", mostly
// "format": "json" too. Input is the command's standard input and may be nil. A call that has no deadline gets
// DefaultTimeout. An error is a *CommandError when Ceph itself refused the command, or wraps ErrNoAnswer when it did not
// come to that.
type Client interface {
	// Mon sends a command to the monitors.
	Mon(ctx context.Context, command any, input []byte) ([]byte, error)
	// Mgr sends a command to the active manager.
	Mgr(ctx context.Context, command any, input []byte) ([]byte, error)
	// Close ends the connection. Calls under way fail.
	Close() error
}

// ImageClient also sends commands to librbd: package rbd has them.
type ImageClient interface {
	Client
	// RBD sends a command to librbd.
	RBD(ctx context.Context, command any) ([]byte, error)
}

// Config says how to reach a cluster.
type Config struct {
	// FSID is the cluster.
	FSID string `json:"fsid"`
	// MonHost lists the addresses of the monitors as the option mon_host does.
	MonHost string `json:"monHost"`
	// Entity is who to be, such as client.admin.
	Entity string `json:"entity"`
	// Key is the entity's cephx key.
	Key string `json:"key"`
}

// ErrNoAnswer is wrapped by errors of calls that got no answer: no quorum yet, no network, no librados. Trying again later
// may help.
var ErrNoAnswer = errors.New("the mons do not answer")

// ErrRefused is wrapped beside ErrNoAnswer when the mons refused the key: they have another one, or none.
var ErrRefused = errors.New("the mons refuse the key")

// CommandError is Ceph's own refusal of a command.
type CommandError struct {
	// Prefix is the command's name, such as "osd new".
	Prefix string
	Errno  syscall.Errno
	// Status is Ceph's sentence about it.
	Status string
}

func (e *CommandError) Error() string {
	if e.Status == "" {
		return fmt.Sprintf("ceph %s: %s", e.Prefix, e.Errno.Error())
	}
	return fmt.Sprintf("ceph %s: %s (%s)", e.Prefix, e.Status, e.Errno.Error())
}

// Is lets errors.Is compare with the errno, such as syscall.ENOENT.
func (e *CommandError) Is(target error) bool {
	errno, ok := target.(syscall.Errno)
	return ok && errno == e.Errno
}
