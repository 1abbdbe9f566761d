package ceph

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// socketTimeout bounds one question to a daemon on this host.
	socketTimeout = 5 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 16 << 20
)

// askSocket asks a daemon of Ceph by its admin socket: the command as JSON with a zero byte after it, and then four bytes of length and so
// many of the answer (src/common/admin_socket.cc).
func askSocket(ctx context.Context, path, prefix string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, socketTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("while asking for %s: %w", prefix, err)
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return nil, err
	}
	question, err := json.Marshal(map[string]string{"prefix": prefix, "format": "json"})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(question, 0)); err != nil {
		return nil, fmt.Errorf("while asking for %s: %w", prefix, err)
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, fmt.Errorf("while reading the answer to %s: %w", prefix, err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxAnswer {
		return nil, fmt.Errorf("the answer to %s is %d bytes long, which is too much", prefix, n)
	}
	answer := make([]byte, n)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, fmt.Errorf("while reading the answer to %s: %w", prefix, err)
	}
	return answer, nil
}
