package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/words"
)

var (
	_ service.Waiter = OSD{}
	_ service.Waiter = Mon{}
	_ service.Waiter = MDS{}
)

// Awaits is empty when the OSD takes part in the cluster: it is up in a map that it has.
func (OSD) Awaits(ctx context.Context, l *service.Local) (string, error) {
	return awaits(ctx, l, "status", "active")
}

// Awaits is empty when the mon is in the quorum.
func (Mon) Awaits(ctx context.Context, l *service.Local) (string, error) {
	return awaits(ctx, l, "mon_status", "leader", "peon")
}

// Awaits is empty when the MDS serves or stands by.
func (MDS) Awaits(ctx context.Context, l *service.Local) (string, error) {
	return awaits(ctx, l, "status", "up:active", "up:standby", "up:standby-replay")
}

// maxSaid is how much is told of an answer that is none yet, such as the text of an error.
const maxSaid = 80

// notYet is what a daemon says to a question that it takes only when it has started: EINVAL, and with some releases that it does not know the command.
var notYet = []byte("ERROR: (22)")

// awaits asks a daemon by its admin socket for its state, which is good when it is one of some.
func awaits(ctx context.Context, l *service.Local, question string, good ...string) (string, error) {
	answer, err := askSocket(ctx, filepath.Join(l.Run, "ceph.asok"), question)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return "it to open its admin socket: it has only just started", nil
	}
	if err != nil {
		return "", err
	}
	if bytes.HasPrefix(answer, notYet) {
		return "it to answer: it is starting", nil
	}
	if !json.Valid(answer) { // the text of another error
		return "it to answer: it is starting, and says " + strconv.Quote(words.Cut(strings.TrimSpace(string(answer)), maxSaid)), nil
	}
	var status struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(answer, &status); err != nil {
		return "", fmt.Errorf("while reading the answer to %s: %w", question, err)
	}
	if slices.Contains(good, status.State) {
		return "", nil
	}
	return fmt.Sprintf("it to be %s: it says that it is %q", good[0], status.State), nil
}
