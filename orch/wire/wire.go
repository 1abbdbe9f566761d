// Package wire is what the module in ceph-mgr, the agents and the servers agree on: the path of a
// call, and the envelope of its answer.
package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
)

// Prefix begins the path of each call at the servers: Prefix + namespace/cluster/method.
const Prefix = "/holdfast/v1/orch/"

// LabelPrefix begins the labels of Hosts that 'ceph orch host label' shows and sets: label NAME is
// ceph.holdfast.io/label.NAME.
const LabelPrefix = "ceph.holdfast.io/label."

// ActionApply is the kind of Actions that carry out what 'ceph orch apply' declares.
const ActionApply = "orch.apply"

// AnnotationCall is on Actions of 'ceph orch'. It tells which call an Action is of, by a digest, as
// ids may be used twice.
const AnnotationCall = "ceph.holdfast.io/orch-call"

// AnnotationAsked is on Actions of 'ceph orch': when the call was made, in a form that sorts. The
// API's own time has seconds.
const AnnotationAsked = "ceph.holdfast.io/orch-asked"

// AskedLayout is the layout of that time, in UTC.
const AskedLayout = "2006-01-02T15:04:05.000000000Z"

// SocketName is the name of the agent's socket in the run directory of a ceph-mgr.
const SocketName = "orch.sock"

// MaxCall is how many bytes a call may have, as a YAML file of 'ceph orch apply -i' has.
const MaxCall = 1 << 20

// MethodState is answered with a State. It is none of Ceph's.
const MethodState = "state"

// State is what the module in ceph-mgr asks for every few seconds.
type State struct {
	// Methods are the names of the methods that there are.
	Methods []string `json:"methods"`
	// Progress tells of what 'ceph orch' asked for and that is under way, or ended a moment ago.
	Progress []Progress `json:"progress"`
}

// Progress is an event of Ceph's module progress.
type Progress struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	// Done is the part that is done, from 0 to 1.
	Done float64 `json:"done"`
	// Ended is set when there is no more to come, and Failed says why it is not as it was asked for.
	Ended  bool   `json:"ended"`
	Failed string `json:"failed,omitempty"`
}

// Path is where a method of a cluster is called.
func Path(cluster types.NamespacedName, method string) string {
	return Prefix + cluster.Namespace + "/" + cluster.Name + "/" + method
}

// Parse takes a path apart that Path made.
func Parse(path string) (cluster types.NamespacedName, method string, ok bool) {
	rest, ok := strings.CutPrefix(path, Prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}, parts[2], true
}

// Reply is the answer to a call: a result, or an error that Ceph shows to its user.
type Reply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Errno is negative, as Ceph's OrchestratorError has it.
	Errno int `json:"errno,omitempty"`
}

// HeaderCall has the id of a call: one that is sent twice, as after a broken connection, is done
// once.
const HeaderCall = "Holdfast-Call"

// mostID is how long an id is at most.
const mostID = 32

// CallID is the id of a call. A call without one, or with one that is no name, gets one of its own.
func CallID(h http.Header) string {
	id := h.Get(HeaderCall)
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	if id == "" || len(id) > mostID || strings.ContainsFunc(id, odd) {
		return strings.ToLower(rand.Text())
	}
	return id
}

// NoCall refuses a request that is none of an orchestrator.
func NoCall(w http.ResponseWriter, r *http.Request) {
	message := fmt.Sprintf("%s %s is no call of an orchestrator", r.Method, r.URL.Path)
	Refuse(w, http.StatusNotFound, syscall.EINVAL, message)
}

// mostDrained is how much of a call that is too large is read on: a caller that still sends when
// the connection ends does not see the answer.
const mostDrained = 64 * MaxCall

// ReadCall reads the arguments of a call. Where it cannot, it answers, and ok is false.
func ReadCall(w http.ResponseWriter, r *http.Request) (args []byte, ok bool) {
	args, err := io.ReadAll(io.LimitReader(r.Body, MaxCall+1))
	switch {
	case err != nil:
		Refuse(w, http.StatusBadRequest, syscall.EINVAL, fmt.Sprintf("cannot read the call: %v; send it again", err))
	case len(args) > MaxCall:
		_, _ = io.CopyN(io.Discard, r.Body, mostDrained) // what is left is nobody's
		message := fmt.Sprintf("the call is too large: it has at most %d bytes; apply fewer documents in one call",
			MaxCall)
		Refuse(w, http.StatusRequestEntityTooLarge, syscall.EINVAL, message)
	default:
		return args, true
	}
	return nil, false
}

// Refuse writes an error. The status of HTTP says who is at fault; Ceph sees the errno alone.
func Refuse(w http.ResponseWriter, status int, errno syscall.Errno, message string) {
	Write(w, status, Reply{Error: message, Errno: -int(errno)})
}

// A reply with a result begins and ends so.
const (
	resultBegins = `{"result":`
	resultEnds   = "}\n"
)

// HasResult says whether a text, which a server wrote to its end, is a Reply with a result.
func HasResult(text []byte) bool { return bytes.HasPrefix(text, []byte(resultBegins)) }

// WriteResult writes a reply with a result, which is JSON. It does not read it again: it may be
// large.
func WriteResult(w http.ResponseWriter, result json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(resultBegins)+len(result)+len(resultEnds)))
	w.WriteHeader(http.StatusOK)
	for _, part := range [][]byte{[]byte(resultBegins), result, []byte(resultEnds)} {
		if _, err := w.Write(part); err != nil {
			return // the caller is gone
		}
	}
}

// Write writes a reply.
func Write(w http.ResponseWriter, status int, r Reply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r) // an error means that the caller is gone
}
