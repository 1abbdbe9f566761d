package join

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const systemNamespace = api.SystemNamespace

// record is what the server keeps of a token: a Secret.
type record struct{ *corev1.Secret }

// Keys of a record.
const (
	keyHash    = "hash"
	keyRole    = "role"
	keyExpires = "expires"
	keyUsedBy  = "usedBy"
	keyUsedKey = "usedKey"
	keyUsedAt  = "usedAt"
	// keyHost is set when the Host was made. A join is repeated without a Host only before that: later the Host is missing
	// because it was deleted, and its token shall not bring it back.
	keyHost = "host"
)

func recordName(id string) string { return "join-token-" + id }

func newRecord(t *Token, role Role, expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: recordName(t.ID), Namespace: systemNamespace},
		Type:       secretType,
		Data: map[string][]byte{
			keyHash:    []byte(hash(t.Secret)),
			keyRole:    []byte(role),
			keyExpires: []byte(expires.UTC().Format(time.RFC3339)),
		},
	}
}

func (r record) text(key string) string { return string(r.Data[key]) }

// expires is when an unused token ends to be valid. One that cannot be read has ended.
func (r record) expires() time.Time {
	t, err := time.Parse(time.RFC3339, r.text(keyExpires))
	if err != nil {
		return time.Time{}
	}
	return t
}

// proves says whether the joiner has the token.
func (r record) proves(q *request) error {
	if subtle.ConstantTimeCompare([]byte(hash(q.Secret)), r.Data[keyHash]) != 1 {
		return refusedUnknown()
	}
	return nil
}

// usable says why a joiner who has the token may not use it. used tells that it is bound to this
// joiner already.
func (r record) usable(q *request, keyID string, now time.Time) (used bool, err error) {
	if role := r.text(keyRole); role != string(q.Role) {
		return false, refused("this token is for joining as %s, not as %s: create one with 'holdfast token create --role %s'",
			role, words.Cut(string(q.Role), mostSaid), words.Cut(string(q.Role), mostSaid))
	}
	if by := r.text(keyUsedBy); by != "" {
		if by == q.Host && r.text(keyUsedKey) == keyID {
			return true, nil
		}
		return false, refused("the token was already used by host %s at %s: create another with 'holdfast token create'", by, r.text(keyUsedAt))
	}
	if now.After(r.expires()) {
		return false, refused("the token expired at %s (it is %s on the server): create another with 'holdfast token create'",
			r.text(keyExpires), now.UTC().Format(time.RFC3339))
	}
	return false, nil
}

// use binds the token to a joiner.
func (r record) use(q *request, keyID string, now time.Time) {
	r.Data[keyUsedBy] = []byte(q.Host)
	r.Data[keyUsedKey] = []byte(keyID)
	r.Data[keyUsedAt] = []byte(now.UTC().Format(time.RFC3339))
}

// settled says that the joiner's Host was made.
func (r record) settled() bool { return r.text(keyHost) != "" }

func refusedUnknown() error {
	return refused("the server does not know this token: it was removed, or is damaged. Create another with 'holdfast token create'")
}

// refusal is an error that the joiner is told. Others are told as "internal error", and logged.
type refusal struct {
	message string
	// again is set when trying again later may help.
	again bool
}

func (e *refusal) Error() string { return e.message }

// Refused says whether an error is a refusal, which trying again does not change.
func Refused(err error) bool {
	var told *refusal
	return errors.As(err, &told) && !told.again
}

func refused(format string, args ...any) error {
	return &refusal{message: fmt.Sprintf(format, args...)}
}
