// Command moves counts how many copies of placement groups move when OSDs leave a Ceph cluster: when they are marked out and then purged, and when
// they lose their weight in CRUSH and are then purged. It asks crushtool, which maps as the mons do; nothing has to run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	groups = 2048
	copies = 3
	limit  = "2m"
)

// rules is the part of a CRUSH map that 'crushtool --build' does not make.
const rules = `rule r {
 id 0
 type replicated
 min_size 1
 max_size 10
 step take default
 step chooseleaf firstn 0 type host
 step emit
}
`

func main() {
	fmt.Printf("%-34s %8s %8s %8s %8s %8s\n", "leaves", "out", "purge", "together", "weight", "purge")
	for _, c := range []cluster{{4, 4, 1}, {10, 10, 1}, {10, 10, 10}, {4, 1, 1}} {
		if err := c.print(); err != nil {
			fmt.Fprintln(os.Stderr, "moves:", err)
			os.Exit(1)
		}
	}
}

// cluster has hosts with as many OSDs each, of which the first ones leave.
type cluster struct{ hosts, each, leave int }

func (c cluster) print() error {
	dir, err := os.MkdirTemp("", "moves")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &tool{dir: dir}
	var out []string
	for id := range c.leave {
		out = append(out, "--weight", strconv.Itoa(id), "0")
	}
	t.build(c)
	base, marked := t.mapped("map"), t.mapped("map", out...)
	light := t.mapped(t.edit("light", c.leave, func(osd string) []string { return []string{"--reweight-item", osd, "0"} }))
	gone := t.mapped(t.edit("gone", c.leave, func(osd string) []string { return []string{"--remove-item", osd} }))
	if t.err == nil {
		fmt.Printf("%-34s %8d %8d %8d %8d %8d\n", fmt.Sprintf("%d OSDs of %d hosts with %d each", c.leave, c.hosts, c.each),
			moved(base, marked), moved(marked, gone), moved(base, marked)+moved(marked, gone), moved(base, light), moved(light, gone))
	}
	return t.err
}

// tool runs crushtool in a directory, until something fails.
type tool struct {
	dir string
	err error
}

func (t *tool) run(args ...string) string {
	if t.err != nil {
		return ""
	}
	cmd := exec.CommandContext(context.Background(), "timeout", append([]string{limit, "crushtool"}, args...)...)
	cmd.Dir = t.dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.err = fmt.Errorf("crushtool %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

// build makes a map of the cluster, with a rule that spreads over hosts.
func (t *tool) build(c cluster) {
	t.run("--build", "--num_osds", strconv.Itoa(c.hosts*c.each), "host", "straw2", strconv.Itoa(c.each), "root", "straw2", "0", "-o", "built")
	text := t.run("-d", "built")
	if t.err != nil {
		return
	}
	head, _, _ := strings.Cut(text, "# rules")
	head = strings.Replace(head, "root root {", "root default {", 1)
	if t.err = os.WriteFile(filepath.Join(t.dir, "text"), []byte(head+rules), 0o600); t.err == nil {
		t.run("-c", "text", "-o", "map")
	}
}

// edit changes a copy of the map for each of the first OSDs, and returns its name.
func (t *tool) edit(name string, first int, change func(osd string) []string) string {
	from := "map"
	for id := range first {
		to := fmt.Sprint(name, id)
		t.run(append(append([]string{"-i", from}, change("osd."+strconv.Itoa(id))...), "-o", to)...)
		from = to
	}
	return from
}

// mapped are the OSDs of each placement group.
func (t *tool) mapped(crush string, args ...string) []map[string]bool {
	text := t.run(append([]string{
		"-i", crush, "--test", "--show-mappings", "--rule", "0", "--num-rep", strconv.Itoa(copies),
		"--min-x", "0", "--max-x", strconv.Itoa(groups - 1),
	}, args...)...)
	var all []map[string]bool
	for line := range strings.Lines(text) { // CRUSH rule 0 x 17 [3,5,1]
		_, list, ok := strings.Cut(line, "[")
		if !ok {
			continue
		}
		on := map[string]bool{}
		for osd := range strings.SplitSeq(strings.Trim(list, "]\n"), ",") {
			on[osd] = true
		}
		all = append(all, on)
	}
	return all
}

// moved is how many copies are where there was none before.
func moved(before, after []map[string]bool) (n int) {
	for i := range before {
		for osd := range after[i] {
			if !before[i][osd] {
				n++
			}
		}
	}
	return n
}
