// Package quorumlost has a server without a quorum say so to users, and which servers do not
// answer. Without it a user waits, and reads words of etcd that name no server.
package quorumlost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const (
	// every is how often the member is asked, and after how long it must do nothing before users
	// are told: an election is over by then.
	every = time.Second
	after = 4 * time.Second
)

// Member is this server's member of etcd.
type Member interface {
	Quorum(ctx context.Context) error
	Members() []etcd.Info
	Answers(ctx context.Context, peerURL string) bool
}

// Watcher knows whether there is a quorum. It is safe for concurrent use.
type Watcher struct {
	Member Member

	text atomic.Pointer[string]
	// reads and writes are what is under way.
	reads, writes running
}

// Run asks the member until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	good := time.Now()
	for {
		if w.Member.Quorum(ctx) == nil {
			good = time.Now()
			w.text.Store(nil)
		} else if time.Since(good) > after && ctx.Err() == nil {
			text, most := w.look(ctx)
			w.text.Store(&text)
			w.reads.end()
			if !most { // else a disk hangs, and the write is likely to be done after all
				w.writes.end()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look says which servers do not answer, and what to do, and whether most of them answer.
func (w *Watcher) look(ctx context.Context) (text string, most bool) {
	var voters []etcd.Info
	for _, m := range w.Member.Members() {
		if m.Voter {
			voters = append(voters, m)
		}
	}
	away := make([]string, len(voters))
	var asked sync.WaitGroup
	for i, m := range voters {
		asked.Go(func() {
			if !w.Member.Answers(ctx, m.PeerURL) {
				away[i] = place(m)
			}
		})
	}
	asked.Wait()
	away = slices.DeleteFunc(away, func(name string) bool { return name == "" })
	slices.Sort(away)
	if 2*(len(voters)-len(away)) > len(voters) {
		return fmt.Sprintf("no quorum: all or most of the %d servers answer, and this one waits for etcd: they elect a "+
			"leader, or the disk of one hangs ('dmesg'); run 'holdfast doctor' on a server; storage daemons keep running",
			len(voters)), true
	}
	return fmt.Sprintf("no quorum: %d of %d servers do not answer: %s; start them ('systemctl start holdfast' there), "+
		"or repair the "+
		"network to them; if most servers are lost for good, 'holdfast restore --from-data' on one that is left; storage "+
		"daemons keep "+
		"running", len(away), len(voters), words.Few(away)), false
}

// place is the name of a member's server, and its address.
func place(m etcd.Info) string {
	address := m.PeerURL
	if u, err := url.Parse(m.PeerURL); err == nil {
		address = u.Hostname()
	}
	if m.Name == "" {
		return address
	}
	return m.Name + " (" + address + ")"
}

// Guard refuses the requests of users while there is no quorum, and ends those that are under way,
// but for watches. Servers and agents wait as they always do, and paths of the server's own state
// are served.
func (w *Watcher) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text := w.text.Load()
		switch {
		case !refuses(r), text == nil && verb(r) == "watch":
			next.ServeHTTP(rw, r)
		case text != nil:
			refuse(rw, r, *text)
		default:
			if text := w.untilLost(next, rw, r); text != "" {
				// The answer that is withheld may have said how long it is, and when to ask again.
				for _, name := range []string{"Content-Length", "Content-Encoding", "Retry-After"} {
					rw.Header().Del(name)
				}
				refuse(rw, r, text)
			}
		}
	})
}

func refuse(rw http.ResponseWriter, r *http.Request, text string) {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason: metav1.StatusReason(api.ReasonQuorumLost), Message: text,
	}}
	responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Version: "v1"}, rw, r)
}

// verb is what a request wants; empty where that is not known.
func verb(r *http.Request) string {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		return ""
	}
	return info.Verb
}

// refuses says whether a request is a user's, and needs etcd.
func refuses(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/apis/") {
		return false
	}
	u, ok := request.UserFrom(r.Context())
	if !ok || slices.Contains(u.GetGroups(), access.GroupMasters) {
		return false
	}
	_, agent := access.AgentOf(u)
	return !agent
}

var codecs = newCodecs()

func newCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return serializer.NewCodecFactory(scheme)
}
