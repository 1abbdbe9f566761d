package ceph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/driver/ceph/location"
)

// crushMove puts hosts where CRUSH is to have them, and makes the buckets that are missing. What is in place stays. One host that cannot be put
// keeps none of the others.
func (c *conn) crushMove(ctx context.Context, r request) error {
	return atOnce(r, func(host string) error {
		to := strings.Fields(r.Params[host])
		// 'osd crush move' would make them, too, but takes no notice of a level that this CRUSH has not.
		for i, pair := range to[1:] {
			level, name, _ := strings.Cut(pair, "=")
			if err := c.addBucket(ctx, name, level, to[:i+1]); err != nil {
				return err
			}
		}
		if err := c.addBucket(ctx, host, "host", to); err != nil {
			return err
		}
		if _, err := c.client.Mon(ctx, command{"prefix": r.Verb, "name": host, "args": to}, nil); err != nil {
			return fmt.Errorf("moving host %s to %s: %w", host, r.Params[host], err)
		}
		return nil
	})
}

// addBucket makes a bucket; one of the name that is there stays where it is.
func (c *conn) addBucket(ctx context.Context, name, level string, in []string) error {
	if _, err := c.client.Mon(ctx, command{"prefix": "osd crush add-bucket", "name": name, "type": level, "args": in}, nil); err != nil {
		return fmt.Errorf("adding %s %s: %w", level, name, err)
	}
	return nil
}

// crushMove has each host come into the smallest bucket that is there, and the larger ones of its location be made up to that.
func (f *foresight) crushMove(r request) {
	if f.Crush == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		to := map[string]string{}
		for pair := range strings.FieldsSeq(r.Params[name]) {
			level, in, _ := strings.Cut(pair, "=")
			to[level] = in
		}
		f.Crush[name] = Bucket{Type: "host", In: f.crushPath(to, location.ToRoot), Weight: f.Crush[name].Weight}
	}
}

// crushPath is what a bucket is in that comes to a location of these levels; what is missing is made.
func (f *foresight) crushPath(to map[string]string, levels []string) map[string]string {
	for i, level := range levels {
		name := to[level]
		if name == "" {
			continue
		}
		b, there := f.Crush[name]
		if !there {
			b = Bucket{Type: level, In: f.crushPath(to, levels[i+1:])}
			f.Crush[name] = b
		}
		in := maps.Clone(b.In)
		in[level] = name
		return in
	}
	return map[string]string{}
}

// crushStarts has an OSD that is new put itself below its host, which stays where it is.
func (f *foresight) crushStarts(osd, host string) {
	if f.Crush == nil {
		return
	}
	if _, placed := f.Crush[osd]; placed && f.Crush[osd].In["host"] == host {
		return
	}
	b, there := f.Crush[host]
	if !there {
		b = Bucket{Type: "host", In: map[string]string{"root": poolRoot}}
	}
	b.Weight++
	f.Crush[host] = b
	in := maps.Clone(b.In)
	in["host"] = host
	f.Crush[osd] = Bucket{Type: "osd", In: in, Weight: 1}
}

// crushBuckets are CRUSH's, to be changed by commands. A Ceph that was never there has its root alone.
func (f *foresight) crushBuckets() map[string]Bucket {
	if f.seen.Reachable {
		return maps.Clone(f.seen.Crush)
	}
	return map[string]Bucket{poolRoot: {Type: "root", In: map[string]string{}}}
}
