package rados

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// maxFrame bounds what either side reads at once. An osd dump of a thousand OSDs has about one MiB.
const maxFrame = 256 << 20

// The targets of a request.
const (
	toMon = "mon"
	toMgr = "mgr"
	toRBD = "rbd"
)

// request is what the parent asks of its child. The first frame of a connection is a Config instead.
type request struct {
	ID     uint64          `json:"id"`
	To     string          `json:"to"`
	Cmd    json.RawMessage `json:"cmd"`
	Input  []byte          `json:"-"`
	Millis int64           `json:"millis"` // the child answers within this time, whatever happens
}

// response answers the request of the same ID.
type response struct {
	ID       uint64 `json:"id"`
	Out      []byte `json:"-"`
	Errno    int    `json:"errno,omitempty"` // positive
	Status   string `json:"status,omitempty"`
	NoAnswer bool   `json:"noAnswer,omitempty"` // Ceph was not reached; Status says why, and Errno is EACCES for a key
}

// What is carried as it is, behind the JSON: an osd dump in it would be written in other letters, and read twice.
func (r request) carried() []byte   { return r.Input }
func (r *request) carry(b []byte)   { r.Input = b }
func (r *response) carried() []byte { return r.Out }
func (r *response) carry(b []byte)  { r.Out = b }

// lengths are those of the two parts of a frame.
type lengths struct{ JSON, Carried uint32 }

// writeFrame writes two lengths of four bytes, big endian, v as JSON, and what it carries, in one Write.
func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a frame: %w", err)
	}
	var carried []byte
	if c, ok := v.(interface{ carried() []byte }); ok {
		carried = c.carried()
	}
	if len(body)+len(carried) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", len(body)+len(carried))
	}
	frame := make([]byte, 0, binary.Size(lengths{})+len(body)+len(carried))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(carried)))
	if _, err := w.Write(append(append(frame, body...), carried...)); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// readFrame reads what writeFrame wrote. It returns io.EOF when the other side has closed between two frames.
func readFrame(r io.Reader, v any) error {
	var n lengths
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return err
	}
	all := uint64(n.JSON) + uint64(n.Carried)
	if all > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", all)
	}
	body := make([]byte, all)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("reading a frame: %w", err)
	}
	if err := json.Unmarshal(body[:n.JSON], v); err != nil {
		return fmt.Errorf("decoding a frame: %w", err)
	}
	if c, ok := v.(interface{ carry([]byte) }); ok && n.Carried > 0 {
		c.carry(body[n.JSON:])
	}
	return nil
}
