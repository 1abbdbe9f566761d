package ganesha

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// Numbers of ONC RPC (RFC 5531) and of NFSv4 (RFC 7530).
const (
	rpcVersion   = 2
	programNFS   = 100003
	nfsVersion   = 4
	procCompound = 1
	authSys      = 1
	opLookup     = 15
	opPutRootFH  = 24
	statusNoEnt  = 2
	statusAccess = 13
	statusDelay  = 10008
	lastFragment = 1 << 31
	maxReply     = 64 << 10
)

var (
	errDeaf = errors.New("the server does not listen yet")
	// errBusy is said while the server reads its configuration, of exports that it serves, too.
	errBusy = errors.New("the server is busy with it")
)

// lookupPause is how long a client waits after the answer NFS4ERR_DELAY (RFC 7530);
// lookupTimeout bounds one question.
const (
	lookupPause   = 200 * time.Millisecond
	lookupTimeout = time.Second
)

// lookups asks an NFS server whether it serves each of some paths, and again, until ctx ends, about
// those with which it is busy: each path has its turn before one is asked for once more. Answers
// are texts, empty for what is served; a path that was not asked for in time has none.
func lookups(ctx context.Context, address string, paths []string) map[string]string {
	answers := map[string]string{}
	for {
		var busy []string
		for _, path := range paths {
			err := lookup(ctx, address, path)
			switch {
			case errors.Is(err, errBusy):
				busy = append(busy, path)
			case err != nil && ctx.Err() != nil:
				continue // cut off: what was said before stands
			}
			answers[path] = textOf(err)
		}
		if paths = busy; len(paths) == 0 {
			return answers
		}
		select {
		case <-ctx.Done():
			return answers
		case <-time.After(lookupPause):
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// lookup goes to a path from the root, as a client does who mounts it.
func lookup(ctx context.Context, address, path string) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return errDeaf
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	if _, err := conn.Write(lookupCall(path)); err != nil {
		return fmt.Errorf("while asking the server: %w", err)
	}
	reply, err := readRecord(conn)
	if err != nil {
		return errors.New("the server listens and does not answer")
	}
	return statusOf(reply)
}

// lookupCall is a call of COMPOUND, as one record.
func lookupCall(path string) []byte {
	var b xdr
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	b.numbers(uint32(time.Now().UnixNano()), 0, rpcVersion, programNFS, nfsVersion, procCompound)
	b.numbers(authSys, 20, 0, 0, 0, 0, 0) // credentials: no stamp, no machine, root
	b.numbers(0, 0)                       // no verifier
	b.numbers(0, 0, uint32(1+len(names))) // no tag, minor version 0, so many operations
	b.numbers(opPutRootFH)
	for _, name := range names {
		b.numbers(opLookup)
		b.text(name)
	}
	return append(binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(b))), b...)
}

// xdr is what RFC 4506 makes of values.
type xdr []byte

func (b *xdr) numbers(all ...uint32) {
	for _, n := range all {
		*b = binary.BigEndian.AppendUint32(*b, n)
	}
}

func (b *xdr) text(s string) {
	b.numbers(uint32(len(s)))
	*b = append(*b, s...)
	*b = append(*b, make([]byte, (4-len(s)%4)%4)...)
}

// readRecord reads a reply of one fragment, as short ones are.
func readRecord(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:]) &^ lastFragment
	if size > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes", size)
	}
	reply := make([]byte, size)
	_, err := io.ReadFull(r, reply)
	return reply, err
}

// statusOf reads the reply to a COMPOUND: call, reply, accepted, verifier, success, and then NFS's own status.
func statusOf(reply []byte) error {
	word := func(i int) uint32 {
		if len(reply) < 4*i+4 {
			return ^uint32(0)
		}
		return binary.BigEndian.Uint32(reply[4*i:])
	}
	if word(1) != 1 || word(2) != 0 || word(4) != 0 || word(5) != 0 {
		return errors.New("the server refuses the lookup")
	}
	switch status := word(6); status {
	case 0:
		return nil
	case statusNoEnt:
		return errors.New(ganesha.NotExported)
	case statusDelay:
		return errBusy
	case statusAccess:
		return errors.New("the server refuses access to it")
	default:
		return fmt.Errorf("the server answers with the error %d of NFS", status)
	}
}
