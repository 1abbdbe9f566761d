package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// commandsArgument is how the script calls this program to send commands to the mons, instead of one 'ceph' after the other,
// each of which takes 0.3 s:
//
//	bench mon-commands CONF [COMMAND[<<INPUT] …] [ready]
//
// All commands are sent at one time, over one connection that waits for the mons. 'ready' then waits until the cluster is
// what 'holdfast apply --wait' waits for.
const commandsArgument = "mon-commands"

const (
	// commandsTimeout bounds one call by the script.
	commandsTimeout = 3 * time.Minute
	// poll is the pause between two questions to a cluster that is not ready yet.
	poll = 20 * time.Millisecond
)

func sendCommands(ctx context.Context, conf string, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, commandsTimeout)
	defer cancel()
	cfg, err := readConfig("/", conf)
	if err != nil {
		return err
	}
	client := rados.Dial(cfg)
	defer client.Close()
	wait := false
	errs := make(chan error)
	sent := 0
	for _, arg := range args {
		if arg == "ready" {
			wait = true
			continue
		}
		sent++
		go func() { errs <- sendCommand(ctx, client, arg) }()
	}
	for range sent {
		err = errors.Join(err, <-errs)
	}
	if err != nil || !wait {
		return err
	}
	return awaitReady(ctx, &asker{client: client})
}

func sendCommand(ctx context.Context, client rados.Client, arg string) error {
	command, input, _ := strings.Cut(arg, "<<")
	_, err := client.Mon(ctx, json.RawMessage(command), []byte(input))
	return err
}

func awaitReady(ctx context.Context, a *asker) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		s, err := a.ask(ctx)
		if err != nil || s != nil && s.ready() {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster is not ready: %+v", s)
		case <-ticker.C:
		}
	}
}
