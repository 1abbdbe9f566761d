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
)

// request is what the parent asks of its child. The first frame of a connection is a Config instead.
type request struct {
	ID     uint64          `json:"id"`
	To     string          `json:"to"`
	Cmd    json.RawMessage `json:"cmd"`
	Input  []byte          `json:"input,omitempty"`
	Millis int64           `json:"millis"` // the child answers within this time, whatever happens
}

// response answers the request of the same ID.
type response struct {
	ID       uint64 `json:"id"`
	Out      []byte `json:"out,omitempty"`
	Errno    int    `json:"errno,omitempty"` // positive
	Status   string `json:"status,omitempty"`
	NoAnswer bool   `json:"noAnswer,omitempty"` // Ceph was not reached; Status says why
}

// writeFrame writes a length of four bytes, big endian, and v as JSON, in one Write.
func writeFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", len(body))
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	if _, err := w.Write(append(frame, body...)); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// readFrame reads what writeFrame wrote. It returns io.EOF when the other side has closed between two frames.
func readFrame(r io.Reader, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("reading a frame: %w", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decoding a frame: %w", err)
	}
	return nil
}
