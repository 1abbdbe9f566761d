package join

import "time"

// Path is where a server takes joiners. The token is the credential; no certificate is asked for.
const Path = "/holdfast/v1/join"

// maxSkew is how far the clocks of two machines may be apart. Ceph itself complains from 0.05 s on; here only what would
// break certificates and leases is kept out.
const maxSkew = 5 * time.Minute

// maxBody bounds what either side reads.
const maxBody = 64 << 10

// maxID bounds the name of a token; see Create.
const maxID = 64

// request is what a joiner sends.
type request struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
	Role   Role   `json:"role"`
	// Host is the name that the joiner wants to have.
	Host string `json:"host"`
	// Request is a certificate signing request in PEM form, for the host's identity.
	Request []byte `json:"request"`
	// PeerURL is where etcd of a joining server will be reached.
	PeerURL string `json:"peerURL,omitempty"`
	// Time is the joiner's clock.
	Time time.Time `json:"time"`
}

// response is what the server answers.
type response struct {
	// Error is set when the joiner is refused; nothing else but Again is set then.
	Error string `json:"error,omitempty"`
	// Again is set when trying again soon may help.
	Again bool `json:"again,omitempty"`
	// CA and Certificate are PEM.
	CA          []byte   `json:"ca,omitempty"`
	Certificate []byte   `json:"certificate,omitempty"`
	Servers     []string `json:"servers,omitempty"`
	// Server is set for a joining server.
	Server *Share `json:"server,omitempty"`
}

// Share is what all servers share. Whoever has it has all rights.
type Share struct {
	// CA and CAKey are the authority, in PEM form.
	CA    []byte `json:"ca"`
	CAKey []byte `json:"caKey"`
	// EncryptionKey encrypts Secrets.
	EncryptionKey []byte `json:"encryptionKey"`
	// Generation is that of the control plane's data: it grows with each restore.
	Generation int64 `json:"generation,omitempty"`
}
