package rbd

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

// Publish implements backend.Controller. It notes the node in the image.
func (c *Controller) Publish(
	ctx context.Context, secrets backend.Secrets, h backend.Handle, a backend.Attachment,
) (map[string]string, error) {
	images, client, done, err := inPool(c.Clients, secrets, h)
	if err != nil {
		return nil, err
	}
	defer done()
	noted, err := images.Note(ctx, h.Name, noteNode)
	if err != nil {
		return nil, conn.Told(err)
	}
	if noted != "" && noted != a.Node {
		return nil, status.Errorf(codes.FailedPrecondition,
			"volume %s is attached to node %s, and one node at a time can have it; delete the pod there", h.Name,
			noted)
	}
	p, found, err := conn.FindPool(ctx, client, isOf(h))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s: Ceph has no pool %s", h.Name, h.Pool)
	}
	if noted == "" {
		if err := images.SetNote(ctx, h.Name, noteNode, a.Node); err != nil {
			return nil, conn.Told(err)
		}
	}
	return map[string]string{contextMons: secrets[backend.SecretMons], contextPool: p.Name}, nil
}

// Unpublish implements backend.Controller. A node that has the image open keeps it.
func (c *Controller) Unpublish(ctx context.Context, secrets backend.Secrets, h backend.Handle, node string) error {
	images, _, done, err := inPool(c.Clients, secrets, h)
	if err != nil {
		return err
	}
	defer done()
	noted, err := images.Note(ctx, h.Name, noteNode)
	switch {
	case rbd.IsMissing(err):
		return nil
	case err != nil:
		return conn.Told(err)
	case noted == "" || node != "" && noted != node:
		return nil
	}
	client, err := images.Note(ctx, h.Name, noteClient)
	if err != nil {
		return conn.Told(err)
	}
	if client != "" {
		return status.Errorf(codes.FailedPrecondition,
			"volume %s is still open on node %s by the client %s; it can be detached when the node has unmounted it",
			h.Name, noted, client)
	}
	return conn.Told(images.RemoveNote(ctx, h.Name, noteNode))
}
