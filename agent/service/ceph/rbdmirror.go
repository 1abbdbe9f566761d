package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
)

// RBDMirror runs the daemons that fetch images from another cluster, and looks after the mirroring of pools.
type RBDMirror struct{}

var (
	_ service.ServiceAgent = RBDMirror{}
	_ service.Reporter     = RBDMirror{}
	_ service.Performer    = RBDMirror{}
	_ service.Versioner    = RBDMirror{}
)

const (
	// rbdTimeout bounds one run of rbd, which takes 0.1 s, and for ever where Ceph does not answer.
	rbdTimeout = 40 * time.Second
	// poolsAge is for how long is believed that all pools are well: to ask is to run two programs for each. Others are asked about with each report.
	poolsAge = 15 * time.Second
)

// Name is ceph-rbd-mirror.
func (RBDMirror) Name() string { return rbdmirror.Type }

// Version is the release of rbd-mirror.
func (RBDMirror) Version(ctx context.Context) (string, error) { return version(ctx, "rbd-mirror") }

// Initialize checks that rbd-mirror is there.
func (RBDMirror) Initialize(context.Context, *service.Host) error {
	return errors.Join(tool.Require("rbd-mirror", "rbd-mirror"), tool.Require("rbd", "ceph-common"))
}

// ConfigureLocalService has nothing to do: its files are all that the daemon needs.
func (RBDMirror) ConfigureLocalService(context.Context, *service.Local) error { return nil }

// DestroyLocalService has nothing to do.
func (RBDMirror) DestroyLocalService(_ context.Context, l *service.Local) error {
	askedPools.Delete(l.Data)
	return nil
}

// poolsSaid is what was said of the pools, and when.
type poolsSaid struct {
	at      time.Time
	wanted  string
	pools   map[string]rbdmirror.Pool
	problem string
}

// well says whether nothing is about to change.
func (s poolsSaid) well() bool {
	for _, pool := range s.pools {
		if pool.Mode == "disabled" || pool.Fetches() && pool.Health != "OK" {
			return false
		}
	}
	return s.problem == ""
}

// askedPools has poolsSaid by the directories of the daemons.
var askedPools sync.Map

// Report says whether the daemon answers, and how the pools are mirrored.
func (RBDMirror) Report(ctx context.Context, l *service.Local) (string, error) {
	r := rbdmirror.Report{PID: l.PID}
	var err error
	for until := time.Now().Add(startTime); ; { // one that has just been started needs a second
		if _, err = askSocket(ctx, filepath.Join(l.Run, "ceph.asok"), "version"); err == nil || time.Now().After(until) || pause(ctx) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("while asking the daemon whether it serves: %w", context.Cause(ctx))
	}
	if r.Up = err == nil; err != nil {
		r.Problem = "it does not answer: " + err.Error()
	}
	said, ok := askedPools.Load(l.Data)
	if s, _ := said.(poolsSaid); !ok || s.wanted != l.Parameters[rbdmirror.ParamPools] || !s.well() || time.Since(s.at) > poolsAge {
		said = askPools(ctx, l)
		askedPools.Store(l.Data, said)
	}
	s := said.(poolsSaid)
	r.Pools = s.pools
	if r.Problem == "" {
		r.Problem = s.problem
	}
	text, err := json.Marshal(r)
	return string(text), err
}

func askPools(ctx context.Context, l *service.Local) poolsSaid {
	s := poolsSaid{at: time.Now(), wanted: l.Parameters[rbdmirror.ParamPools], pools: map[string]rbdmirror.Pool{}}
	for _, name := range strings.Fields(s.wanted) {
		pool, err := askPool(ctx, l, name)
		if err != nil {
			s.problem = err.Error()
			continue
		}
		s.pools[name] = pool
	}
	return s
}

func askPool(ctx context.Context, l *service.Local, name string) (p rbdmirror.Pool, err error) {
	var info struct {
		Mode  string
		Peers []struct {
			UUID      string `json:"uuid"`
			Site      string `json:"site_name"`
			Direction string `json:"direction"`
		}
	}
	if err := askRBD(ctx, l, &info, "mirror", "pool", "info", "--format", "json", name); err != nil {
		return p, err
	}
	p.Mode = info.Mode
	for _, peer := range info.Peers {
		p.Peers = append(p.Peers, rbdmirror.Peer{UUID: peer.UUID, Site: peer.Site, Direction: peer.Direction})
	}
	if p.Mode == "disabled" {
		return p, nil
	}
	var status struct {
		Summary struct {
			Health string         `json:"health"`
			States map[string]int `json:"states"`
		} `json:"summary"`
	}
	if err := askRBD(ctx, l, &status, "mirror", "pool", "status", "--format", "json", name); err != nil {
		return p, err
	}
	p.Health, p.Images = status.Summary.Health, status.Summary.States
	return p, nil
}

func askRBD(ctx context.Context, l *service.Local, into any, args ...string) error {
	out, err := runRBD(ctx, l, nil, args...)
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("while asking how pool %s is mirrored: %w", args[len(args)-1], err)
	}
	return nil
}

// runRBD runs rbd as the daemon itself. What is secret goes by its standard input alone.
func runRBD(ctx context.Context, l *service.Local, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, rbdTimeout)
	defer cancel()
	out, says, err := asDaemon(ctx, l, rbdmirror.FileConf, rbdmirror.Entity(l.Daemon.Spec.ID), stdin, "rbd", args...)
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("rbd did not end within %s: Ceph does not answer, this cluster or the other one", rbdTimeout)
	}
	return nil, fmt.Errorf("rbd %s: %w: %s", strings.Join(args[:3], " "), err, lastWords(says))
}

// Perform brings the mirroring of a pool to how it is wanted.
func (RBDMirror) Perform(ctx context.Context, l *service.Local, cmd service.Command) (message string, err error) {
	pool := cmd.Params[rbdmirror.ParamPool]
	defer askedPools.Delete(l.Data)
	switch cmd.Verb {
	case rbdmirror.VerbEnable:
		_, err = runRBD(ctx, l, nil, "mirror", "pool", "enable", pool, cmd.Params[rbdmirror.ParamMode])
		message = "images of pool " + pool + " are mirrored"
	case rbdmirror.VerbImport:
		token := cmd.Secret[api.SecretEntryToken]
		if _, err := rbdmirror.Decode(string(token)); err != nil {
			return "", fmt.Errorf("the entry %s of the Secret: %w", api.SecretEntryToken, err)
		}
		_, err = runRBD(ctx, l, token, "mirror", "pool", "peer", "bootstrap", "import", "--direction", "rx-only", pool, "-")
		message = "images of pool " + pool + " are fetched from the other cluster"
	default:
		err = fmt.Errorf("this agent does not know the command %q: upgrade Holdfast on this host", cmd.Verb)
	}
	if err != nil {
		return "", err
	}
	return message, nil
}
