package node

import (
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// usersFile is the file with the pods that use a volume, in the volume's directory.
const usersFile = "users.json"

// The keys of a pod in the context of a volume, which the kubelet adds where the CSIDriver has podInfoOnMount (docs of
// kubernetes-csi, "Pod Info on Mount").
const (
	podName      = "csi.storage.k8s.io/pod.name"
	podNamespace = "csi.storage.k8s.io/pod.namespace"
	podUID       = "csi.storage.k8s.io/pod.uid"
)

// Pod is one that uses a volume.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// user is a pod, and what it was told last of the volume.
type user struct {
	Pod

	Notified Reason `json:"notified,omitempty"`
}

// users are those of a volume, by where they see it.
type users map[string]user

// podOf is the pod that a volume is published to; false where the kubelet does not say.
func podOf(r *csi.NodePublishVolumeRequest) (Pod, bool) {
	c := r.GetVolumeContext()
	p := Pod{Namespace: c[podNamespace], Name: c[podName], UID: c[podUID]}
	return p, p.Namespace != "" && p.Name != "" && p.UID != ""
}

// change changes the users of a volume. It writes nothing where f says that nothing is new.
func (s *Server) change(id string, f func(users) (changed bool)) error {
	s.usersMu.Lock()
	defer s.usersMu.Unlock()
	path := filepath.Join(s.dir(id), usersFile)
	all := users{}
	if _, err := read(path, &all); err != nil {
		return err
	}
	if !f(all) {
		return nil
	}
	return write(path, all)
}

// use notes a pod that sees the volume at target. A pod that is noted already stays as it is.
func (s *Server) use(id, target string, p Pod) error {
	return s.change(id, func(all users) bool {
		if all[target].Pod == p {
			return false
		}
		all[target] = user{Pod: p}
		return true
	})
}

// unuse forgets the pod at target.
func (s *Server) unuse(id, target string) error {
	return s.change(id, func(all users) bool {
		_, found := all[target]
		delete(all, target)
		return found
	})
}
