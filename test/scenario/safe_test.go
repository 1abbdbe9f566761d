package scenario

import (
	"fmt"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
)

// checkSafe checks what must hold at any instant, whatever happens.
func (s *stage) checkSafe() error {
	if damage := s.cephs.damaged(); len(damage) > 0 {
		return fmt.Errorf("%s", damage[0])
	}
	clusters, err := s.Clusters(s.ctx)
	if err != nil {
		return err
	}
	seen := map[string]string{}
	for i := range clusters {
		v, err := s.View(s.ctx, nameOf(&clusters[i]))
		if err != nil {
			return err
		}
		for i := range v.Daemons {
			if err := s.checkDaemon(v, &v.Daemons[i], seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDaemon compares one daemon with all others that were seen before.
func (s *stage) checkDaemon(v *engine.View, d *api.Daemon, seen map[string]string) error {
	name := d.Namespace + "/" + d.Name
	alone := []string{fmt.Sprintf("the number of a %s of cluster %s/%s: %s", d.Spec.Type, d.Namespace, d.Spec.Cluster, d.Spec.ID)}
	if d.Spec.Type == ceph.TypeMon {
		alone = append(alone, fmt.Sprintf("being a mon of %s/%s on host %s", d.Namespace, d.Spec.Cluster, d.Spec.Host),
			"the address "+d.Spec.Parameters[ceph.ParamAddress])
	}
	for _, device := range d.Spec.Devices {
		place := d.Spec.Host + "/" + device.ID
		if !s.isGiven(d.Namespace, d.Spec.Host, device.ID) {
			return fmt.Errorf("%s has device %s, which no StorageNode of its namespace ever named", name, place)
		}
		alone = append(alone, "device "+place)
	}
	for _, what := range alone {
		if other := seen[what]; other != "" {
			return fmt.Errorf("%s and %s share %s", name, other, what)
		}
		seen[what] = name
	}
	if err := checkFiles(v, d); err != nil {
		return err
	}
	return s.checkStarted(d)
}

// checkFiles: the Secrets that a daemon's files are made of are there before the daemon.
func checkFiles(v *engine.View, d *api.Daemon) error {
	for _, f := range d.Spec.Files {
		for _, source := range f.Sources {
			if source.Secret == nil {
				continue
			}
			if !slices.ContainsFunc(v.Secrets, func(x engine.SecretInfo) bool { return x.Name == source.Secret.Name }) {
				return fmt.Errorf("%s needs Secret %s, which is not there", d.Name, source.Secret.Name)
			}
		}
	}
	return nil
}

// checkStarted: no OSD is wanted Running before Ceph knows it by its number.
func (s *stage) checkStarted(d *api.Daemon) error {
	if d.Spec.Type != ceph.TypeOSD || d.Spec.State != api.WantRunning {
		return nil
	}
	id, err := strconv.Atoi(d.Spec.ID)
	if err != nil {
		return err
	}
	if uuid := s.cephs.cluster(d.Spec.Parameters[ceph.ParamFSID]).OSDs()[id]; uuid != d.Spec.Parameters[ceph.ParamOSDUUID] {
		return fmt.Errorf("%s is wanted Running, and Ceph has %q by its number", d.Name, uuid)
	}
	return nil
}
