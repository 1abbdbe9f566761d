package cephfs

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
)

// Publish implements backend.Controller. It notes the node in the subvolume.
func (c *Controller) Publish(
	ctx context.Context, secrets backend.Secrets, h backend.Handle, a backend.Attachment,
) (map[string]string, error) {
	s, done, err := existing(ctx, c.Clients, secrets, h)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := s.whole(ctx, h.Name)
	if err != nil {
		return nil, conn.Told(err)
	}
	notes, err := s.notes(ctx, h.Name)
	if err != nil && !isMissing(err) {
		return nil, conn.Told(err)
	}
	use, conflicting := shared, alone
	if a.Alone() {
		use, conflicting = alone, ""
	}
	if other := otherNode(notes, a.Node, conflicting); other != "" {
		return nil, status.Errorf(codes.FailedPrecondition,
			"volume %s is attached to node %s, and its access mode is for one node; delete the pod there", h.Name,
			other)
	}
	if notes[noteOf(a.Node)] != use {
		if err := s.setNote(ctx, h.Name, noteOf(a.Node), use); err != nil {
			return nil, conn.Told(err)
		}
	}
	return map[string]string{contextMons: secrets[backend.SecretMons], contextPath: v.Path}, nil
}

// Unpublish implements backend.Controller.
func (c *Controller) Unpublish(ctx context.Context, secrets backend.Secrets, h backend.Handle, node string) error {
	s, found, done, err := open(ctx, c.Clients, secrets, h)
	if err != nil {
		return err
	}
	defer done()
	if !found {
		return nil
	}
	notes, err := s.notes(ctx, h.Name)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return conn.Told(err)
	}
	for key := range notes {
		if strings.HasPrefix(key, noteNode) && (node == "" || key == noteOf(node)) {
			if err := s.removeNote(ctx, h.Name, key); err != nil {
				return conn.Told(err)
			}
		}
	}
	return nil
}

// noteOf is the note about a node. Ceph keeps notes in small letters.
func noteOf(node string) string { return noteNode + strings.ToLower(node) }

// otherNode returns a node, but for one, that has the volume, and uses it in some way; an empty use
// means any.
func otherNode(notes map[string]string, node, use string) string {
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		other, ok := strings.CutPrefix(key, noteNode)
		if ok && key != noteOf(node) && (use == "" || notes[key] == use) {
			return other
		}
	}
	return ""
}
