package gluster

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"regexp"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
)

// ParameterDurability of a class is one of replicate3 (any number from 3 on), arbiter, disperse4+2
// (any numbers) and distribute; without it the storage system does as it does by itself.
const ParameterDurability = "durability"

// The sizes of volumes, in bytes.
const (
	mib = 1 << 20
	// smallestSize is large compared with what a client can write beyond a limit.
	smallestSize = 16 * mib
)

// Modes implements backend.Controller.
func (*Controller) Modes() backend.Modes { return backend.FileModes() }

// handleOf is what a requested volume is known by.
func handleOf(r backend.Request) (backend.Handle, error) {
	h := backend.Handle{
		Backend: Name, Cluster: r.Parameters[backend.ParameterCluster], Pool: r.Parameters[backend.ParameterNamespace],
		Name: volumeName(r.Name),
	}
	if h.Cluster == "" || h.Pool == "" {
		return h, status.Errorf(codes.InvalidArgument,
			"the StorageClass lacks the parameter %s or %s; name a StorageCluster and its namespace",
			backend.ParameterCluster, backend.ParameterNamespace)
	}
	if _, ok := backend.Parse(h.String()); !ok {
		return h, status.Errorf(codes.InvalidArgument,
			"the names of the StorageCluster %q and its namespace %q do not fit into the id of a volume, which has "+
				"128 characters", h.Cluster, h.Pool)
	}
	return h, nil
}

// allowed are names that a Volume can have.
var allowed = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// volumeName is the name of the Volume for a request: the request's, where a Volume can have it.
func volumeName(requested string) string {
	if allowed.MatchString(requested) {
		return requested
	}
	sum := sha256.Sum256([]byte(requested))
	return "csi-" + hex.EncodeToString(sum[:20])
}

var (
	replicate = regexp.MustCompile(`^replicate([0-9]{1,3})$`)
	disperse  = regexp.MustCompile(`^disperse([0-9]{1,3})\+([0-9]{1,3})$`)
)

// durabilityOf reads the parameter. Which numbers can be had is up to the API.
func durabilityOf(text string) (*api.VolumeDurability, error) {
	number := func(s string) int32 {
		n, _ := strconv.Atoi(s) // it has up to three digits
		return int32(n)
	}
	switch text {
	case "":
		return nil, nil
	case "arbiter":
		return &api.VolumeDurability{Arbiter: &api.VolumeArbiter{}}, nil
	case "distribute":
		return &api.VolumeDurability{Distribute: &api.VolumeDistribute{}}, nil
	}
	if m := replicate.FindStringSubmatch(text); m != nil {
		return &api.VolumeDurability{Replicate: &api.VolumeReplicate{Count: number(m[1])}}, nil
	}
	if m := disperse.FindStringSubmatch(text); m != nil {
		return &api.VolumeDurability{
			Disperse: &api.VolumeDisperse{Data: number(m[1]), Redundancy: number(m[2])},
		}, nil
	}
	return nil, status.Errorf(codes.InvalidArgument,
		"the StorageClass has the parameter %s=%q; write replicate3, arbiter, disperse4+2 or distribute",
		ParameterDurability, text)
}

// sizeFor is the size of a new volume.
func sizeFor(r backend.Request) (int64, error) {
	if r.Bytes > math.MaxInt64-mib {
		return 0, status.Errorf(codes.OutOfRange, "a volume of %d bytes cannot be made", r.Bytes)
	}
	return backend.SizeFor(r, mib, smallestSize)
}
