// Package join brings hosts and servers in: it makes tokens, takes them on the server's side, and uses them on the joiner's.
//
// A token carries the fingerprint of the authority, so that the joiner knows the server before it says anything, and a
// secret, so that the server knows the joiner. It is used once: at its first use it is bound to the joiner's key, and only
// the holder of that key may repeat the join, after a crash.
package join

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Role is what a token lets a machine join as.
type Role string

// The roles.
const (
	// RoleServer: a member of the control plane. It gets the authority's key, and so all rights.
	RoleServer Role = "server"
	// RoleAgent: a host that runs storage daemons.
	RoleAgent Role = "agent"
)

// prefix begins all tokens, and tells their version.
const prefix = "hf1."

// Token is what a token says.
type Token struct {
	// Fingerprint identifies the authority of the control plane; see pki.Fingerprint.
	Fingerprint string `json:"f"`
	// ID finds the server's record of the token; it is no secret.
	ID string `json:"i"`
	// Secret proves that the joiner has the token.
	Secret string `json:"s"`
	// Servers are where the API is reached, as IP:port.
	Servers []string `json:"a"`
}

// String writes the token as one word. It holds the secret: it is not for logs.
func (t *Token) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // Strings can always be encoded.
	}
	return prefix + base64.RawURLEncoding.EncodeToString(text)
}

// Parse reads a token. What it cannot read was not made by 'holdfast token create', or is not whole.
func Parse(text string) (*Token, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok {
		return nil, fmt.Errorf("invalid token: a token begins with %q; create one with 'holdfast token create'", prefix)
	}
	t := &Token{}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(raw, t)
	}
	if err == nil && (t.Fingerprint == "" || t.ID == "" || t.Secret == "" || len(t.Servers) == 0) {
		err = errors.New("a part is missing")
	}
	if err != nil {
		return nil, errors.New("the token is damaged, perhaps cut off when it was copied: copy it again, whole, " +
			"or create another with 'holdfast token create'")
	}
	return t, nil
}
