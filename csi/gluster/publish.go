package gluster

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

// AnnotationNodes are the nodes that have a Volume, with the mode in which each has it.
const AnnotationNodes = api.Group + "/csi-nodes"

// users are the modes in which nodes have a volume, by the names of nodes.
type users map[string]csi.VolumeCapability_AccessMode_Mode

// String lists the nodes.
func (u users) String() string {
	return "node " + strings.Join(slices.Sorted(maps.Keys(u)), ", ")
}

func usersOf(v *api.Volume) (users, error) {
	all := users{}
	text := v.Annotations[AnnotationNodes]
	if text == "" {
		return all, nil
	}
	var names map[string]string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil, status.Errorf(codes.Internal, "the annotation %s of Volume %s cannot be read: %v; correct it",
			AnnotationNodes, v.Name, err)
	}
	for node, mode := range names {
		all[node] = csi.VolumeCapability_AccessMode_Mode(csi.VolumeCapability_AccessMode_Mode_value[mode])
	}
	return all, nil
}

// note writes the users into a Volume.
func (u users) note(v *api.Volume) error {
	if len(u) == 0 {
		delete(v.Annotations, AnnotationNodes)
		return nil
	}
	names := map[string]string{}
	for node, mode := range u {
		names[node] = mode.String()
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if v.Annotations == nil {
		v.Annotations = map[string]string{}
	}
	v.Annotations[AnnotationNodes] = string(text)
	return nil
}

// refuse fails for a use beside which there cannot be the others that there are.
func (u users) refuse(volume string, a backend.Attachment) error {
	for _, node := range slices.Sorted(maps.Keys(u)) {
		other := backend.Attachment{Node: node, Mode: u[node]}
		if node != a.Node && (a.Alone() || other.Alone()) {
			return status.Errorf(codes.FailedPrecondition,
				"volume %s is attached to node %s (%s), and node %s wants it as well (%s): one node at a time can "+
					"have it; delete the pod on %s, or use ReadWriteMany",
				volume, node, other.Mode, a.Node, a.Mode, node)
		}
	}
	return nil
}

// Publish implements backend.Controller. It notes the node in the Volume, and says which servers a
// client asks now.
func (c *Controller) Publish(
	ctx context.Context, _ backend.Secrets, h backend.Handle, a backend.Attachment,
) (map[string]string, error) {
	holdfast, err := c.API()
	if err != nil {
		return nil, err
	}
	v, err := change(ctx, holdfast, h, func(v *api.Volume) error {
		all, err := usersOf(v)
		if err != nil {
			return err
		}
		if v.DeletionTimestamp != nil {
			return status.Errorf(codes.FailedPrecondition, "volume %s is being deleted", h.Name)
		}
		if err := all.refuse(h.Name, a); err != nil {
			return err
		}
		if !serves(v) || v.Status.Source == "" {
			return status.Errorf(codes.Unavailable, "volume %s is %s: %s; the call is made again", h.Name,
				cmp.Or(v.Status.State, api.ResourcePending), v.Status.Message)
		}
		all[a.Node] = a.Mode
		return all.note(v)
	})
	if err != nil {
		return nil, err
	}
	server, name, _ := strings.Cut(v.Status.Source, ":/")
	servers := append([]string{server}, v.Status.Backups...)
	return map[string]string{contextServers: strings.Join(servers, ","), contextVolume: name}, nil
}

// Unpublish implements backend.Controller. Nothing keeps a node from a volume that it has mounted:
// GlusterFS cannot fence a client.
func (c *Controller) Unpublish(ctx context.Context, _ backend.Secrets, h backend.Handle, node string) error {
	holdfast, err := c.API()
	if err != nil {
		return err
	}
	_, err = change(ctx, holdfast, h, func(v *api.Volume) error {
		all, err := usersOf(v)
		if err != nil {
			return err
		}
		if node == "" {
			clear(all)
		}
		delete(all, node)
		return all.note(v)
	})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}
