package torus

import (
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The types of Daemons.
const (
	// TypeTorusd stores blocks.
	TypeTorusd = "torusd"
	// TypeEtcd is a member of the etcd that holds the metadata, or, on a node that has none, a gateway to the members: torusd can be
	// told one address alone.
	TypeEtcd = "etcd"
)

// The parameters of Daemons.
const (
	// ParamReport asks for reports: DepthPeer or DepthCluster.
	ParamReport = api.ParameterReport
	// ParamEtcd is what is given to torusd and torusctl as --etcd.
	ParamEtcd = "etcd"
	// ParamPeer is where torusd listens for the others, as http://ADDRESS:PORT. Torus knows a peer by it.
	ParamPeer = "peer"
	// ParamStore is the directory of the blocks.
	ParamStore = "store"
	// ParamInit is set on the one torusd whose agent writes the first metadata, unless its store was used before: then there was
	// metadata, and making it anew would lose the way to all data. Its value is the block size in bytes, or "default".
	ParamInit = "init"
	// ParamGiven are the addresses of an etcd that the cluster was given, with commas between. Of a
	// cluster that is wiped it is told to forget the ring and the volumes. An etcd of Holdfast's
	// own goes with its Daemons.
	ParamGiven = "given"
	// ParamClient is where an etcd serves clients, as http://ADDRESS:PORT.
	ParamClient = "client"
	// ParamRole is RoleMember or RoleGateway.
	ParamRole = "role"
)

// The depths of a report.
const (
	// DepthPeer is the node's own identity.
	DepthPeer = "peer"
	// DepthCluster is what Torus says of all peers, the ring and the volumes besides.
	DepthCluster = "cluster"
)

// The roles of an etcd.
const (
	RoleMember  = "member"
	RoleGateway = "gateway"
)

// The ports of an etcd of Holdfast's own: none of those that etcd takes by itself, which belong to the machine's other etcds.
const (
	EtcdClientPort = 23790
	EtcdPeerPort   = 23800
)

// The commands. Object is what follows; peers are named by their UUIDs, several with spaces between.
const (
	VerbPeerAdd     = "peer add"
	VerbPeerRemove  = "peer remove"
	VerbPeerForce   = "peer remove --force"
	VerbReplication = "ring set-replication"
	VerbCreate      = "volume create-block" // of ParamBytes bytes
	VerbDelete      = "volume delete"
)

// ParamBytes is the size of a volume to create.
const ParamBytes = "bytes"

// Arguments are those of torusctl, without --etcd, for a command.
func Arguments(verb, object string, params map[string]string) ([]string, error) {
	switch verb {
	case VerbPeerAdd, VerbPeerRemove, VerbPeerForce:
		return append(strings.Fields(verb), strings.Fields(object)...), nil
	case VerbReplication, VerbDelete:
		return append(strings.Fields(verb), object), nil
	case VerbCreate:
		return append(strings.Fields(verb), object, params[ParamBytes]), nil
	}
	return nil, fmt.Errorf("torusctl knows no command %q", verb)
}

// Done says whether torusctl's last words mean that what a command asks for is so already.
func Done(verb, words string) bool {
	switch verb {
	case VerbPeerAdd:
		return strings.Contains(words, "to ring: torus: already exists")
	case VerbPeerForce, VerbPeerRemove:
		return strings.Contains(words, "from ring: torus: doesn't exist")
	case VerbDelete:
		return strings.Contains(words, "perhaps it doesn't exist")
	}
	return false
}

// Forgotten says whether torusctl's last words mean that the etcd has nothing of a Torus.
func Forgotten(words string) bool {
	return strings.Contains(words, "torus: no global metadata available")
}

// InUse says whether torusctl's last words mean that it does not delete a volume because a client
// uses it.
func InUse(verb, words string) bool {
	return verb == VerbDelete && strings.Contains(words, "torus: locked")
}
