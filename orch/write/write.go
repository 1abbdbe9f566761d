// Package write carries out the calls of 'ceph orch' that change something: as an Action, or as one
// write of an object. It writes in the name of the orchestrator of the cluster (wire.User), and
// with no other right.
package write

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/propose"
)

// Home is the leader that carries calls out. It is safe for concurrent use.
type Home interface {
	// View is a cluster as the leader's caches have it; see engine.Store.
	View(ctx context.Context, cluster types.NamespacedName) (*engine.View, error)
	Asked
}

// Asked answers questions about what would be. A leader.Asked is one.
type Asked interface {
	// Propose says what would come of a request; see leader.Asked.
	Propose(ctx context.Context, r propose.Request, most time.Duration) (*propose.Proposal, error)
	// Suppose says what the plan would be if the view were another one; see leader.Asked.
	Suppose(
		ctx context.Context, of api.StorageType, cluster types.NamespacedName, change func(*engine.View),
	) (*engine.View, *engine.Plan, error)
}

// Call is one call that may change something.
type Call struct {
	answer.Call
	Home Home
	// Leaving finds out which OSDs do not stay.
	Leaving func(*engine.View) Leaving
	// Client reads and writes in the name of 'ceph orch' of the cluster.
	Client client.Client
	// ID tells this request from others: one that is sent twice is done once.
	ID string
	// Log is for what its caller is not told.
	Log *slog.Logger

	// digest tells the call from others with its id.
	digest string
}

type method = func(ctx context.Context, c *Call) (any, error)

// methods are those that change something, or ask the storage system.
var methods = map[string]method{
	"apply":                  applyAll,
	"apply_mon":              applyOne,
	"apply_mgr":              applyOne,
	"apply_mds":              applyOne,
	"apply_rgw":              applyOne,
	"apply_rbd_mirror":       applyOne,
	"apply_drivegroups":      applyAll,
	"plan":                   preview,
	"remove_service":         removeService,
	"pause":                  pause,
	"resume":                 resume,
	"cancel_completions":     cancelAll,
	"add_host":               addHost,
	"remove_host":            removeHost,
	"add_host_label":         addLabel,
	"remove_host_label":      removeLabel,
	"update_host_addr":       setAddress,
	"host_ok_to_stop":        okToStop,
	"enter_host_maintenance": enterMaintenance,
	"exit_host_maintenance":  exitMaintenance,
	"drain_host":             drain,
	"stop_drain_host":        stopDrain,
	"rescan_host":            rescan,
	"daemon_action":          daemonAction,
	"service_action":         serviceAction,
	"remove_daemons":         removeDaemons,
	"add_daemon":             addDaemon,
	"set_unmanaged":          setUnmanaged,
	"create_osds":            createOSDs,
	"remove_osds":            removeOSDs,
	"stop_remove_osds":       stopRemoval,
	"remove_osds_status":     removalStatus,
	"zap_device":             zap,
	"replace_device":         replaceDevice,
	"blink_device_light":     light,
}

// Methods are the names of the methods that Do knows, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(methods)) }

// Knows says whether Do knows a method.
func Knows(name string) bool { return methods[name] != nil }

// Do carries a call out. Each error that the caller can do something about is an *answer.Error.
func Do(ctx context.Context, name string, c *Call) (any, error) {
	if c.View.Cluster.DeletionTimestamp != nil && name != "remove_osds_status" {
		return nil, answer.Errorf("cluster %s is being deleted: nothing of it can be changed any more",
			c.View.Cluster.Name)
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), c.Args...))
	c.digest = hex.EncodeToString(sum[:])
	result, err := methods[name](ctx, c)
	if errors.Is(err, context.DeadlineExceeded) {
		const late = "the call took too long (%v): 'holdfast get actions' shows what it has begun; try again, or ask " +
			"for less in one call"
		return nil, &answer.Error{Errno: -int(syscall.EAGAIN), Message: fmt.Sprintf(late, err)}
	}
	return result, told(err)
}

// told makes what the API server says to a write an answer.
func told(err error) error {
	var refusal *answer.Error
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &refusal) || !errors.As(err, &status) {
		return err
	}
	if code := status.Status().Code; code < 400 || code >= 500 {
		return err
	}
	errno := syscall.EINVAL
	if apierrors.IsForbidden(err) {
		errno = syscall.EPERM
	}
	return &answer.Error{Errno: -int(errno), Message: err.Error()}
}

// cluster is the name of the cluster.
func (c *Call) cluster() types.NamespacedName { return client.ObjectKeyFromObject(c.View.Cluster) }

// read decodes the arguments of a call.
func read[T any](c *Call) (T, error) {
	var a T
	if len(c.Args) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return a, answer.Errorf("the arguments of the call cannot be read: %v", err)
	}
	return a, nil
}

// host is the Host of a name.
func (c *Call) host(name string) (*api.Host, error) {
	i := slices.IndexFunc(c.View.Hosts, func(h api.Host) bool { return h.Name == name })
	if i < 0 {
		return nil, answer.Errorf("host %s has not joined Holdfast: %s", name, spec.HowToJoin)
	}
	return &c.View.Hosts[i], nil
}

// usedHost is the Host of a name that the cluster uses or may use.
func (c *Call) usedHost(name string) (*api.Host, error) {
	h, err := c.host(name)
	if err == nil && !c.View.UsedHosts()[name] {
		return nil, answer.Errorf("host %s is no host of cluster %s: add it with 'ceph orch host add %s'", name,
			c.View.Cluster.Name, name)
	}
	return h, err
}

const (
	// seenWithin bounds the wait for the leader's own caches after a write, and lookEvery is
	// between two looks.
	seenWithin, lookEvery = 500 * time.Millisecond, 10 * time.Millisecond
)

// until looks at the cluster until ok holds, or for as long as most: a caller who reads after a
// write finds what it wrote.
func (c *Call) until(ctx context.Context, most time.Duration, ok func(*engine.View) bool) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		view, err := c.Home.View(ctx, c.cluster())
		if err == nil && ok(view) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// writing wraps an error with what was being written.
func writing(err error, what string, values ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("while writing "+fmt.Sprintf(what, values...)+": %w", err)
}
