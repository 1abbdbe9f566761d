// Package fence lets a server prove, with each write, that it still may do it: that it leads, and
// that it has a lock.
//
// A fence is a name with a value, the token of who may write now. Who takes leadership or a lock
// sets the fence in the very etcd transaction that writes the Lease. A write that carries tokens is
// done by etcd in one transaction with the comparison of the fences: there is no moment between
// looking and writing in which a paused server could be overtaken.
//
// Tokens travel as HTTP headers from the client to the API server, and as gRPC metadata from there
// to the etcd member, both in one process. They are no secret.
package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

const (
	// Header carries the tokens that a write relies on; it is refused when one of the fences has
	// another value or is not set.
	Header = "Holdfast-Fence"
	// SetHeader carries the fences that the write sets when it is done. An empty value removes the
	// fence.
	SetHeader = "Holdfast-Fence-Set"
	// KeptHeader is in the answer to each write that came with tokens: the API server compares
	// them. One that is not Holdfast's takes no notice of them.
	KeptHeader = "Holdfast-Fence-Kept"
	// MetadataKey is the gRPC metadata that carries what Header does.
	MetadataKey = "holdfast-fence"
	// SetMetadataKey is the gRPC metadata that carries what SetHeader does.
	SetMetadataKey = "holdfast-fence-set"
	// LostPrefix begins the gRPC error, of code FailedPrecondition, of a write whose fence is lost.
	LostPrefix = "fenced off:"
)

// Token is the value of one fence.
type Token struct{ Name, Value string }

func (t Token) String() string { return t.Name + "=" + t.Value }

// Format writes tokens as a header has them.
func Format(tokens []Token) string {
	texts := make([]string, len(tokens))
	for i, t := range tokens {
		texts[i] = t.String()
	}
	return strings.Join(texts, ",")
}

// Parse reads what Format wrote.
func Parse(header string) ([]Token, error) {
	if header == "" {
		return nil, nil
	}
	var tokens []Token
	for text := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || strings.ContainsFunc(text, unfit) {
			return nil, fmt.Errorf("%q is not a fence token: it must be NAME=VALUE in printable ASCII without spaces", text)
		}
		tokens = append(tokens, Token{name, value})
	}
	return tokens, nil
}

// unfit says of which characters a token cannot be made: gRPC metadata takes printable ASCII alone.
func unfit(r rune) bool { return r <= ' ' || r > '~' || r == ',' }

type (
	needKey struct{}
	setKey  struct{}
)

// With returns a context whose writes rely on these tokens, too.
func With(ctx context.Context, tokens ...Token) context.Context {
	return context.WithValue(ctx, needKey{}, merge(of(ctx, needKey{}), tokens))
}

// Setting returns a context whose writes set fences. It is for one write.
func Setting(ctx context.Context, tokens ...Token) context.Context {
	return context.WithValue(ctx, setKey{}, tokens)
}

func of(ctx context.Context, key any) []Token {
	tokens, _ := ctx.Value(key).([]Token)
	return tokens
}

// merge adds tokens; a later one of the same name replaces an earlier one.
func merge(tokens, more []Token) []Token {
	merged := slices.Clone(tokens)
	for _, t := range more {
		merged = slices.DeleteFunc(merged, func(have Token) bool { return have.Name == t.Name })
		merged = append(merged, t)
	}
	return merged
}

// Config returns a copy of config whose writes rely on tokens and on those of their contexts.
func Config(config *rest.Config, tokens ...Token) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next, tokens} })
	return config
}

// transport adds the headers to writes.
type transport struct {
	next   http.RoundTripper
	always []Token
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return t.next.RoundTrip(r)
	}
	need, set := merge(t.always, of(r.Context(), needKey{})), of(r.Context(), setKey{})
	if len(need)+len(set) == 0 {
		return t.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	put(r.Header, Header, need)
	put(r.Header, SetHeader, set)
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode < http.StatusMultipleChoices && response.Header.Get(KeptHeader) == "" {
		response.Body.Close()
		return nil, fmt.Errorf("%w: %s", ErrNotKept, r.URL.Host)
	}
	return response, err
}

// ErrNotKept is wrapped by the error of a write that an API server did without a look at its
// fences. Whoever meets it may not go on: it could write while another one leads. The first write
// of a leader is that of its Lease.
var ErrNotKept = errors.New("the API server supports no fences, so it is not Holdfast's, and no server may lead " +
	"with it")

func put(h http.Header, name string, tokens []Token) {
	if len(tokens) > 0 {
		h.Set(name, Format(tokens))
	}
}
