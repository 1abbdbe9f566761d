package rbd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
)

// resize tells the daemon behind a socket, in the protocol QMP, that the image has another size.
func resize(ctx context.Context, socket string, bytes int64) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("asking %s to grow: %w", daemon, err)
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	answers := bufio.NewScanner(conn)
	if !answers.Scan() {
		return fmt.Errorf("asking %s to grow: %w", daemon, errNoGreeting)
	}
	if err := execute(conn, answers, "qmp_capabilities", nil); err != nil {
		return err
	}
	return execute(conn, answers, "block_resize", map[string]any{"node-name": "volume", "size": bytes})
}

// execute has one command executed. Events may come before its answer.
func execute(conn net.Conn, answers *bufio.Scanner, command string, arguments map[string]any) error {
	text, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		return err
	}
	if arguments == nil {
		text = []byte(`{"execute": "` + command + `"}`)
	}
	if _, err := conn.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("asking %s for %s: %w", daemon, command, err)
	}
	for answers.Scan() {
		var a struct {
			Return *json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := json.Unmarshal(answers.Bytes(), &a); err != nil {
			return fmt.Errorf("reading the answer to %s: %w", command, err)
		}
		if a.Error != nil {
			return fmt.Errorf("%s refuses %s: %s", daemon, command, a.Error.Desc)
		}
		if a.Return != nil {
			return nil
		}
	}
	return fmt.Errorf("asking %s for %s: it closed the connection: %w", daemon, command, answers.Err())
}
