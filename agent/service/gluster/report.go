package gluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Report tells what glusterd says of its pool, and where bricks can lie on this host.
func (Glusterd) Report(ctx context.Context, l *service.Local) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ask := asker(l)
	r, err := glusterd.Gather(ctx, ask, l.Parameters[glusterd.ParamReport])
	if err != nil {
		return "", err
	}
	if r.UUID, err = nodeUUID(ctx, l, ask); err != nil {
		return "", err
	}
	r.Generation, r.Version, r.Stores = l.Daemon.Generation, l.Daemon.Status.Version, stores(l)
	if r.Installed, err = installed.version(ctx); err != nil {
		return "", err
	}
	if r.Outdated, err = outdated(l); err != nil {
		return "", err
	}
	// A boot takes the link away, and nobody configures a glusterd that is started as it was.
	if err := showSocket(l); err != nil {
		addProblem(r, err.Error())
	}
	if r.Pool != nil {
		var problem string
		r.Groups, problem = groups(l)
		addProblem(r, problem)
		if err := reportRefusals(l.Run, r.Pool); err != nil {
			addProblem(r, err.Error())
		}
	}
	return r.Text()
}

// addProblem adds what kept a part of a report from being made; empty for nothing.
func addProblem(r *glusterd.Report, text string) {
	if text != "" {
		r.Problem = strings.TrimPrefix(r.Problem+"; "+text, "; ")
	}
}

// nodeUUID is the node's identity within its pool. glusterd makes it when it is first asked for.
func nodeUUID(ctx context.Context, l *service.Local, ask glusterd.Asker) (string, error) {
	path := filepath.Join(l.Data, "state", "glusterd.info")
	uuid, err := readUUID(path)
	if !errors.Is(err, os.ErrNotExist) {
		return uuid, err
	}
	if err := do(ctx, ask, "system::", "uuid", "get"); err != nil {
		return "", fmt.Errorf("while asking glusterd for its identity: %w", err)
	}
	return readUUID(path)
}

func readUUID(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if uuid, ok := strings.CutPrefix(s.Text(), "UUID="); ok {
			return uuid, nil
		}
	}
	return "", fmt.Errorf("%s names no UUID", path)
}

// stores are the places for bricks on this host.
func stores(l *service.Local) []glusterd.Store {
	var out []glusterd.Store
	for _, d := range l.Daemon.Spec.Devices {
		mount := mountPoint(l, d.Name)
		s := glusterd.Store{Name: d.Name, Path: brickRoot(mount), Device: d.ID}
		if dev, err := mountedDevice(mount); err != nil || dev == 0 {
			s.Problem = "device " + d.ID + " is not mounted at " + mount + ": the agent mounts it again; if that fails, the Daemon's message says why"
		} else {
			measure(&s)
		}
		out = append(out, s)
	}
	for _, dir := range directories(l) {
		s := glusterd.Store{Name: dir, Path: dir}
		if s.Problem = misplaced(dir, l.Parameters[glusterd.ParamPool]); s.Problem == "" {
			measure(&s)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b glusterd.Store) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// measure fills in what the file system says of a store. One that was shut down, because its disk fails, answers with an error.
func measure(s *glusterd.Store) {
	var fs unix.Statfs_t
	var own, root unix.Stat_t
	bricks, err := storedBricks(s.Path)
	err = errors.Join(err, unix.Statfs(s.Path, &fs), unix.Stat(s.Path, &own), unix.Stat("/", &root))
	if err != nil {
		s.Problem = fmt.Sprintf("%s cannot be read: %v", s.Path, err)
		return
	}
	s.Bricks, s.Root = bricks, own.Dev == root.Dev
	s.Size = int64(fs.Blocks) * fs.Bsize
	s.Free = glusterd.RoundFree(s.Size, int64(fs.Bavail)*fs.Bsize)
}
