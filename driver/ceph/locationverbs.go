package ceph

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// crushMove puts hosts where CRUSH is to have them. A host, and a bucket that it is in, is made if it is not there. What is in place stays.
func (c *conn) crushMove(ctx context.Context, r request) error {
	return atOnce(r, func(name string) error {
		if err := c.plain(ctx, r, command{"prefix": "osd crush add-bucket", "name": name, "type": "host"}); err != nil {
			return err
		}
		return c.plain(ctx, r, command{"prefix": r.Verb, "name": name, "args": strings.Fields(r.Params[name])})
	})
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
		f.Crush[name] = Bucket{Type: "host", In: f.crushPath(to, toRoot), Weight: f.Crush[name].Weight}
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
func (f *foresight) crushStarts(host string) {
	if f.Crush == nil {
		return
	}
	b, there := f.Crush[host]
	if !there {
		b = Bucket{Type: "host", In: map[string]string{"root": poolRoot}}
	}
	b.Weight++
	f.Crush[host] = b
}

// crushBuckets are CRUSH's, to be changed by commands. A Ceph that was never there has its root alone.
func (f *foresight) crushBuckets() map[string]Bucket {
	if f.seen.Reachable || !anyLocated(f.after) {
		return maps.Clone(f.seen.Crush)
	}
	return map[string]Bucket{poolRoot: {Type: "root", In: map[string]string{}}}
}
