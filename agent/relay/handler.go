package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/orch/wire"
)

const (
	// callTimeout bounds one call at the servers. The module waits for 3 s, and has to get an
	// answer in a sentence before.
	callTimeout = 2500 * time.Millisecond
	// keptFor is how long an answer stands in where no leader answers.
	keptFor = time.Minute
	// keptAnswers is how many answers are kept of one mgr, of different calls.
	keptAnswers = 32
	// maxReply is how many bytes an answer may have: the devices of 1,000 hosts take 8 MB.
	maxReply = 64 << 20
)

// reads are the calls whose last answers stand in where no leader answers. Their rows say how old
// they are.
var reads = map[string]bool{"get_hosts": true, "get_inventory": true, "describe_service": true, "list_daemons": true}

// handler passes the calls of one mgr on.
type handler struct {
	client  *http.Client
	host    string
	cluster types.NamespacedName
	now     func() time.Time

	mu   sync.Mutex
	kept map[[sha256.Size]byte]kept
}

// kept is an answer of a moment.
type kept struct {
	at   time.Time
	text []byte
}

func newHandler(config *rest.Config, cluster types.NamespacedName) (*handler, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &handler{
		client: client, host: strings.TrimSuffix(config.Host, "/"), cluster: cluster, now: time.Now,
		kept: map[[sha256.Size]byte]kept{},
	}, nil
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, ok := methodOf(r)
	if !ok {
		wire.NoCall(w, r)
		return
	}
	body, ok := wire.ReadCall(w, r)
	if !ok {
		return
	}
	status, text, err := h.ask(r.Context(), method, wire.CallID(r.Header), body)
	if err != nil {
		why := fmt.Sprintf("no server of Holdfast answers: %v; try again, and check 'holdfast doctor'", err)
		status, text = http.StatusServiceUnavailable, refusal(syscall.EAGAIN, why)
	}
	if status == http.StatusOK {
		h.keep(method, body, text)
	} else if old := h.old(method, body); old != nil && status == http.StatusServiceUnavailable {
		status, text = http.StatusOK, old
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // an error means that the mgr is gone
}

// ask asks the servers. The text is a wire.Reply.
func (h *handler) ask(ctx context.Context, method, id string, body []byte) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	url := h.host + wire.Path(h.cluster, method)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(wire.HeaderCall, id)
	response, err := h.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if text, err = readReply(response); err != nil {
		return 0, nil, err
	}
	return response.StatusCode, inEnvelope(response.StatusCode, text), nil
}

// readReply reads a whole reply, into memory of its size where the server says it.
func readReply(response *http.Response) ([]byte, error) {
	if n := response.ContentLength; n > 0 && n <= maxReply {
		text := make([]byte, n)
		_, err := io.ReadFull(response.Body, text)
		return text, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err == nil && len(text) > maxReply {
		err = fmt.Errorf("the answer has more than %d bytes", maxReply)
	}
	return text, err
}

// inEnvelope makes a wire.Reply of what a server answers by itself, such as that it lets nobody in.
// A result is not decoded: it may be large.
func inEnvelope(status int, text []byte) []byte {
	if status == http.StatusOK && wire.HasResult(text) {
		return text
	}
	var reply wire.Reply
	if json.Unmarshal(text, &reply) == nil && reply.Error != "" {
		return text
	}
	var said metav1.Status
	if json.Unmarshal(text, &said) == nil && said.Message != "" {
		text = []byte(said.Message)
	}
	errno := syscall.EAGAIN
	if status == http.StatusForbidden || status == http.StatusUnauthorized {
		errno = syscall.EACCES
	}
	what := fmt.Sprintf("%d %s", status, http.StatusText(status))
	return refusal(errno, fmt.Sprintf("the server of Holdfast answered %s: %.300s", what, text))
}

func refusal(errno syscall.Errno, message string) []byte {
	text, _ := json.Marshal(wire.Reply{Error: message, Errno: -int(errno)}) // it holds a text and a number
	return text
}

func keyOf(method string, body []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(method+"\n"), body...))
}

func (h *handler) keep(method string, body, text []byte) {
	if !reads[method] {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.kept) >= keptAnswers {
		clear(h.kept)
	}
	h.kept[keyOf(method, body)] = kept{h.now(), text}
}

func (h *handler) old(method string, body []byte) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k, ok := h.kept[keyOf(method, body)]; ok && h.now().Sub(k.at) < keptFor {
		return k.text
	}
	return nil
}
