package cli

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestKubeconfig_create: a viewer may look and change nothing, an admin may do all, and no file is written over.
func TestKubeconfig_create(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	command := func(name, role string) (file, line string) {
		file = filepath.Join(t.TempDir(), name)
		return file, "kubeconfig create " + name + " --role " + role + " --data-dir " + b.dir + " -o " + file
	}
	for role, may := range map[string]bool{"viewer": false, "admin": true} {
		file, line := command("jo-"+role, role)
		b.expect(line, exitOK, "gives jo-"+role+" the role "+role)
		if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, st, err)
		}
		c, err := (&globals{kubeconfig: file}).client()
		b.must(err)
		b.must(c.List(t.Context(), &api.HostList{}))
		err = c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-" + role}})
		if may != (err == nil) || !may && !apierrors.IsForbidden(err) {
			t.Errorf("%s makes a Secret: %v", role, err)
		}
		b.expect(line, exitFailed, "already")
	}
	_, line := command("jo", "viewer")
	b.expect(line+" --ttl 876000h", exitFailed, "the authority itself ends")
	b.expect(line+" --ttl -1h", exitUsage, "too short")
	b.expect(line+" --role boss", exitUsage, "use viewer or admin")
	_, line = command("system:jo", "viewer")
	b.expect(line, exitUsage, "is not a valid user name")
	_, line = command("jo", "admin")
	b.expect(line+" --data-dir "+t.TempDir(), exitFailed, "run this on a server")
}
