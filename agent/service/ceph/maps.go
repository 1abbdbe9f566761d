package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

var _ service.Performer = OSD{}

// giveWait is how long a command waits for what takes longer: it is asked again.
const giveWait = 40 * time.Second

// gifts are those that are under way, by the directory that marks their end. One of a disk that needs long goes on when the command that asked
// for it ends.
var gifts sync.Map // string -> *gift

type gift struct {
	done chan struct{}
	err  error
}

// Perform tells of the maps of the OSD, which is stopped, or gives them to a mon of this host.
func (o OSD) Perform(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	switch cmd.Verb {
	case monstore.VerbNewest:
		return newestMap(ctx, l)
	case monstore.VerbGive:
		return giveMaps(ctx, l, cmd.Params[monstore.ParamMon], cmd.Params[monstore.ParamToken])
	}
	return "", fmt.Errorf("this agent has no command %q for an OSD", cmd.Verb)
}

func objectstore(ctx context.Context, l *service.Local, args ...string) ([]byte, error) {
	all := append([]string{"--no-mon-config", "--data-path", filepath.Join(l.Data, directoryName)}, args...)
	return tool.Output(ctx, l.Data, "ceph-objectstore-tool", all...)
}

// newestMap is the number of the newest OSD map that the OSD has. What the tool prints decides, and not its exit code: with Ceph 16
// that is the low byte of some length although all went well.
func newestMap(ctx context.Context, l *service.Local) (string, error) {
	out, err := objectstore(ctx, l, "--op", "dump-super")
	var super struct {
		FSID   string  `json:"cluster_fsid"`
		Newest *uint64 `json:"newest_map"`
	}
	if bad := json.Unmarshal(out, &super); bad != nil || super.Newest == nil {
		return "", fmt.Errorf("while reading the superblock of osd.%s: %w", l.Daemon.Spec.ID, errors.Join(err, bad))
	}
	if super.FSID != l.Parameters[paramFSID] {
		return "", fmt.Errorf("osd.%s is of the cluster %s, not of %s", l.Daemon.Spec.ID, super.FSID, l.Parameters[paramFSID])
	}
	return strconv.FormatUint(*super.Newest, 10), nil
}

// giveMaps writes the maps of the OSD, and its key, into what becomes the store of a mon. The daemons of a host have their directories beside
// each other.
func giveMaps(ctx context.Context, l *service.Local, mon, token string) (string, error) {
	if mon == "" || token == "" || strings.ContainsAny(mon+token, "/") {
		return "", fmt.Errorf("%q and %q name no mon to give maps to", mon, token)
	}
	maps := mapsDir(filepath.Join(filepath.Dir(filepath.Dir(l.Data)), mon, filepath.Base(l.Data)), token)
	given := filepath.Join(maps, "given-"+l.Daemon.Spec.ID)
	if _, err := os.Stat(given); err == nil {
		return "given before", nil
	}
	v, under := gifts.LoadOrStore(given, &gift{done: make(chan struct{})})
	g := v.(*gift)
	if !under {
		go g.give(context.WithoutCancel(ctx), l, maps, given)
	}
	select {
	case <-g.done:
		return "given", g.err
	case <-ctx.Done():
	case <-time.After(giveWait):
	}
	return "", errors.New("the maps are still being written")
}

// give ends within tool.Timeout.
func (g *gift) give(ctx context.Context, l *service.Local, maps, given string) {
	defer close(g.done)
	defer gifts.Delete(given)
	if g.err = atomicfile.MkdirAll(maps, 0o700); g.err != nil {
		return
	}
	// Without a keyring beside the OSD's data the tool writes an empty key for it, and the mon dies of that (Ceph 16).
	if g.err = copyFile(filepath.Join(l.Data, fileKeyring), filepath.Join(l.Data, directoryName, fileKeyring)); g.err != nil {
		return
	}
	if _, g.err = objectstore(ctx, l, "--op", "update-mon-db", "--mon-store-path", maps); g.err != nil {
		return
	}
	if g.err = syncTree(maps); g.err == nil {
		g.err = atomicfile.Write(given, nil, 0o600)
	}
}
