package rados

import (
	"context"
	"fmt"
	"io"
	"net"
)

// greeting is what every daemon of Ceph begins with when somebody connects, before it is told who that is (Ceph docs, "msgr2" and "Messenger").
const greeting = "ceph"

// Greet connects to a daemon of Ceph and waits for its greeting, which needs no key and no quorum. A process that hangs sends none, although
// the kernel takes the connection for it.
func Greet(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout) // the earlier deadline counts
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	said := make([]byte, len(greeting))
	if _, err := io.ReadFull(conn, said); err != nil {
		return fmt.Errorf("%w: while waiting for the greeting of %s: %w", ErrNoAnswer, address, err)
	}
	if string(said) != greeting {
		return fmt.Errorf("the program that listens on %s is not a daemon of Ceph", address)
	}
	return nil
}
