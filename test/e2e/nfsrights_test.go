package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// rights is an export that the hosts of a lab may use, or not.
type rights struct {
	*bed
	// manifest declares the export with more in its spec.
	manifest func(more string) string
	// a and b are hosts that do not serve it.
	a, b *hosts.Host
	// source is what clients mount, and written the number of files that were written.
	source  string
	written int
}

// nfsRights changes an export time and again: at the moment at which 'holdfast apply --wait' ends, who lost a right can do nothing any more, and
// who got one can use it.
func (b *bed) nfsRights() {
	r := b.rightsOf(func(more string) string { return nfsExport("rights", more) })
	r.a.Run(b, b.Context(), "bash", "-c", `mkdir -p /var/lib/vol && mount -t glusterfs "$0":/data /var/lib/vol && mkdir /var/lib/vol/sub &&
		echo -n sub >/var/lib/vol/who && mv /var/lib/vol/who /var/lib/vol/sub && echo -n root >/var/lib/vol/who && umount /var/lib/vol`, r.a.IP)
	for range 4 {
		r.is(", clients: ["+r.a.IP+"]", r.a, r.b, "root")
		r.is(", clients: ["+r.b.IP+"]", r.b, r.a, "root")
	}
	r.writes(", accessType: ReadOnly", false)
	r.writes("", true)
	r.writes(", squash: All", false)
	r.writes(", squash: None", true)
	for range 2 {
		r.is(", path: /sub, clients: ["+r.a.IP+"]", r.a, r.b, "sub")
		r.is(", path: /, clients: ["+r.b.IP+"]", r.b, r.a, "root")
	}
	r.run("delete", "nfsexport", "rights")
	if out, err := r.asks(r.b, "who", "nfs-cat"); err == nil {
		b.Errorf("of an export that is deleted %s reads %q", r.b.Name, out)
	}
}

// rightsOf are those of an export that is called rights.
func (b *bed) rightsOf(manifest func(more string) string) *rights {
	b.Helper()
	d, err := b.nfsServer(1)
	if err != nil {
		b.Fatalf("%v", err)
	}
	r := &rights{bed: b, manifest: manifest}
	for _, h := range b.Lab.Hosts() {
		if h.Name != d.Spec.Host {
			r.a, r.b = h, r.a
		}
	}
	return r
}

// declare waits for 'holdfast apply --wait' of the export.
func (r *rights) declare(more string) {
	r.Helper()
	if out, code := r.apply(1, r.manifest(more), "--wait"); code != 0 {
		r.Fatalf("holdfast apply of %q ended with %d:\n%s", more, code, out)
	}
	e, err := r.export(1, "rights")
	if err != nil {
		r.Fatalf("%v", err)
	}
	r.source = e.Status.Source
}

// asks runs a program of libnfs on a host, once. The last argument is a path within the export.
func (r *rights) asks(h *hosts.Host, path, program string, args ...string) (string, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return h.Try(ctx, program, append(args, "nfs://"+strings.Replace(r.source, ":", "", 1)+"/"+path+"?version=4")...)
}

// is declares the export: one host reads what is behind it, and the other one nothing.
func (r *rights) is(more string, may, mayNot *hosts.Host, want string) {
	r.Helper()
	r.declare(more)
	if out, err := r.asks(mayNot, "who", "nfs-cat"); err == nil {
		r.Errorf("with %q, %s may not use it, and reads %q", more, mayNot.Name, out)
	}
	if out, err := r.asks(may, "who", "nfs-cat"); err != nil || out != want {
		r.Errorf("with %q, %s reads %q and not %q: %v", more, may.Name, out, want, err)
	}
}

// writes declares the export, which lets a host write or does not.
func (r *rights) writes(more string, want bool) {
	r.Helper()
	r.declare(more)
	r.written++
	if out, err := r.asks(r.a, fmt.Sprint("written", r.written), "nfs-cp", "/etc/hostname"); (err == nil) != want {
		r.Errorf("with %q, a file is written: %v, want %v: %s", more, err == nil, want, out)
	}
}
