package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// readConfig finds how to reach the cluster of a ceph.conf as its administrator, whose key is in a file called keyring
// beside it. Both names are seen below root, which may be the root directory of another process.
func readConfig(root, conf string) (rados.Config, error) {
	text, err := os.ReadFile(filepath.Join(root, conf))
	if err != nil {
		return rados.Config{}, fmt.Errorf("while reading how to reach the cluster: %w", err)
	}
	keys, err := os.ReadFile(filepath.Join(root, filepath.Dir(conf), "keyring"))
	if err != nil {
		return rados.Config{}, fmt.Errorf("while reading the key of the cluster's administrator: %w", err)
	}
	cfg := rados.Config{
		FSID: lookUp(string(text), "global", "fsid"), MonHost: lookUp(string(text), "global", "mon_host"),
		Entity: "client.admin", Key: lookUp(string(keys), "client.admin", "key"),
	}
	if cfg.FSID == "" || cfg.MonHost == "" || cfg.Key == "" {
		return rados.Config{}, fmt.Errorf("%s and the keyring beside it do not say all of fsid, mon_host and the key of %s", conf, cfg.Entity)
	}
	return cfg, nil
}

// lookUp reads one option of a section of a ceph.conf or keyring.
func lookUp(text, section, option string) string {
	now := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			now = strings.TrimSuffix(name, "]")
		}
		if key, value, ok := strings.Cut(line, "="); ok && now == section && strings.TrimSpace(key) == option {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// status is the part of Ceph's own 'status' that tells how far a cluster is.
type status struct {
	Health struct {
		Status string `json:"status"`
	} `json:"health"`
	Quorum []string `json:"quorum_names"`
	OSDMap struct {
		Epoch int `json:"epoch"`
		OSDs  int `json:"num_osds"`
		Up    int `json:"num_up_osds"`
		In    int `json:"num_in_osds"`
	} `json:"osdmap"`
	PGMap struct {
		States []struct {
			Name  string `json:"state_name"`
			Count int    `json:"count"`
		} `json:"pgs_by_state"`
		PGs   int   `json:"num_pgs"`
		Bytes int64 `json:"bytes_total"`
	} `json:"pgmap"`
	MgrMap struct {
		Available bool `json:"available"`
		Standbys  int  `json:"num_standbys"`
	} `json:"mgrmap"`
	// wanted is how many placement groups the pools shall have, as the OSD map says.
	wanted int
}

func (s *status) quorate() bool      { return len(s.Quorum) == mons }
func (s *status) known() bool        { return s.OSDMap.OSDs == osds }
func (s *status) up() bool           { return s.OSDMap.Up == osds && s.OSDMap.In == osds }
func (s *status) mgrAvailable() bool { return s.MgrMap.Available }
func (s *status) mgrsThere() bool    { return s.MgrMap.Available && s.MgrMap.Standbys == mgrs-1 }

// clean says whether the mgr has reported on all placement groups, and all of them are active and clean. Until the mgr has
// reported, HEALTH_OK means nothing.
func (s *status) clean() bool {
	clean := 0
	for _, state := range s.PGMap.States {
		names := strings.Split(state.Name, "+")
		if len(names) >= 2 && names[0] == "active" && names[1] == "clean" {
			clean += state.Count
		}
	}
	return s.PGMap.Bytes > 0 && s.PGMap.PGs >= s.wanted && clean == s.PGMap.PGs
}

// ready is what 'holdfast apply --wait' waits for, as far as Ceph can tell.
func (s *status) ready() bool {
	return s.quorate() && s.up() && s.mgrsThere() && s.clean() && s.Health.Status == "HEALTH_OK"
}

// asker asks one cluster how far it is, over one connection.
type asker struct {
	client rados.Client
	// epoch is the OSD map that wanted is of.
	epoch, wanted int
}

// ask returns an error only when the cluster's answer makes no sense; a cluster that does not answer yet has no status.
func (a *asker) ask(ctx context.Context) (*status, error) {
	s := &status{}
	if ok, err := a.read(ctx, "status", s); !ok {
		return nil, err
	}
	if s.OSDMap.Epoch > a.epoch {
		var dump struct {
			Epoch int `json:"epoch"`
			Pools []struct {
				PGs int `json:"pg_num"`
			} `json:"pools"`
		}
		if ok, err := a.read(ctx, "osd dump", &dump); !ok {
			return nil, err
		}
		a.epoch, a.wanted = dump.Epoch, 0
		for _, pool := range dump.Pools {
			a.wanted += pool.PGs
		}
	}
	s.wanted = a.wanted
	return s, nil
}

func (a *asker) read(ctx context.Context, prefix string, into any) (bool, error) {
	out, err := a.client.Mon(ctx, map[string]string{"prefix": prefix, "format": "json"}, nil)
	if errors.Is(err, rados.ErrNoAnswer) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return false, fmt.Errorf("while reading ceph %s: %w", prefix, err)
	}
	return true, nil
}
