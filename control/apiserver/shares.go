package apiserver

import (
	"context"
	"net/http"
	"runtime"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/holdfast-storage/holdfast/control/access"
)

// shares divides what the server can do at once, in the place of API Priority and Fairness, whose settings would be objects of
// two more kinds. Each share has seats of its own, and those who find none wait in line, fairly:
//
//   - heartbeats: the leases of hosts. They get through whatever else goes on: a host that is not heard for long is taken
//     for dead, and the work that follows would be on top of the load that kept it from being heard.
//   - hosts: everything else that agents ask for. A whole fleet that starts asks for far more than can be done at once.
//   - people: administrators, viewers, and who joins. They can look at a server that has a fleet to bring up.
//
// The servers themselves wait for nobody: the engine bounds what it asks for, and the fleet can only come to rest by it.
//
// The library's own limit refuses at once what is too much (429). A thousand agents that all ask again one second later keep
// a server refusing.
type shares struct{ heartbeats, hosts, people *share }

// share is named in the answers' headers, and in metrics.
type share struct {
	*fair
	schema *flowcontrolv1.FlowSchema
	level  *flowcontrolv1.PriorityLevelConfiguration
}

const (
	// seatsPerCore are how many requests of a share are worked on at once for each core. They wait for etcd for a part of their time,
	// which writes to the disk what comes together at once. With more, each would take longer, heartbeats among them: etcd's own
	// work has to wait for a core as everything else does.
	seatsPerCore = 8
	// beatsPerCore is the same for heartbeats, which do little but wait for etcd.
	beatsPerCore = 32
	// maxWaiting is how many of a share may wait: some for each host of a large fleet. Each takes some 50 KB.
	maxWaiting = 4096
)

func newShares() *shares {
	cores := max(2, runtime.GOMAXPROCS(0))
	return &shares{
		newShare("heartbeats", beatsPerCore*cores), newShare("hosts", seatsPerCore*cores), newShare("people", seatsPerCore*cores),
	}
}

func newShare(name string, seats int) *share {
	meta := metav1.ObjectMeta{Name: name, UID: types.UID(name)}
	return &share{
		newFair(seats, maxWaiting), &flowcontrolv1.FlowSchema{ObjectMeta: meta}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta},
	}
}

var _ flowcontrol.Interface = &shares{}

// of is the share of a request, or nil when it has to wait for nobody.
func (s *shares) of(u user.Info, info *request.RequestInfo) *share {
	_, isHost := access.AgentOf(u)
	switch {
	case slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup):
		return nil
	case isHost && info.IsResourceRequest && info.Resource == "leases":
		return s.heartbeats
	case isHost:
		return s.hosts
	}
	return s.people
}

// Handle calls execute when it is the request's turn, unless that is too long in coming: then the client is told to ask later.
func (s *shares) Handle(ctx context.Context, digest flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	_ func() fcrequest.WorkEstimate, waits fairqueuing.QueueNoteFn, execute func(),
) {
	mine := s.of(digest.User, digest.RequestInfo)
	if mine == nil {
		execute()
		return
	}
	name := digest.User.GetName()
	note(mine.schema, mine.level, name)
	if !mine.enter(ctx, name, waits) {
		return
	}
	defer mine.leave()
	execute()
}

// What follows belongs to the library's own way, which looks at objects and weighs requests.

// Run returns at once: there is nothing to watch.
func (s *shares) Run(<-chan struct{}) error { return nil }

// Install shows nothing.
func (s *shares) Install(*mux.PathRecorderMux) {}

// RegisterWatch counts nothing.
func (s *shares) RegisterWatch(*http.Request) flowcontrol.ForgetWatchFunc { return func() {} }

// GetInterestedWatchCount weighs nothing.
func (s *shares) GetInterestedWatchCount(*request.RequestInfo) int { return 0 }

// GetMaxSeats weighs nothing.
func (s *shares) GetMaxSeats(string) uint64 { return 1 }

// SetMaxSeats weighs nothing.
func (s *shares) SetMaxSeats(string, uint64) {}

// ForgetPriorityLevel weighs nothing.
func (s *shares) ForgetPriorityLevel(string) {}
