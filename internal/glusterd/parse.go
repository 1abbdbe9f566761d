package glusterd

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The functions below read what 'gluster --mode=script --xml' of the releases 10 and 11 prints. Whether a command failed stands
// in opRet alone: the program's exit status is 0 for most failures.

// ErrNoAnswer is wrapped by the error of an output that is no XML: glusterd does not run, or the arguments were wrong.
var ErrNoAnswer = errors.New("cannot read the answer of gluster")

// Failure is a command that glusterd refused or failed.
type Failure struct {
	Ret, Errno int
	Text       string
}

func (f *Failure) Error() string {
	return cmp.Or(f.Text, fmt.Sprintf("gluster failed with code %d", f.Errno))
}

// Busy says whether the same command may do later: another one has the lock.
func (f *Failure) Busy() bool {
	return strings.Contains(f.Text, "Another transaction is in progress") || strings.Contains(f.Text, "Locking failed") ||
		strings.Contains(f.Text, "Another transaction could be in progress")
}

// Result reads what any command printed and returns an error that wraps a *Failure if it failed.
func Result(out []byte) error {
	return read(out, &output{})
}

// output is the part that all outputs have.
type output struct {
	Ret    int    `xml:"opRet"`
	Errno  int    `xml:"opErrno"`
	Text   string `xml:"opErrstr"`
	Output string `xml:"output"`
}

func (o *output) result() *output { return o }

type result interface{ result() *output }

func read(out []byte, into result) error {
	if err := xml.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%w: %s", ErrNoAnswer, firstLine(out))
	}
	if o := into.result(); o.Ret != 0 {
		return &Failure{o.Ret, o.Errno, cmp.Or(strings.TrimSpace(o.Text), strings.TrimSpace(o.Output))}
	}
	return nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return cmp.Or(line, "it printed nothing")
}

// ParsePeers reads 'peer status'. The node itself is not among them.
func ParsePeers(out []byte) ([]Peer, error) {
	var x struct {
		output
		Peers []struct {
			UUID      string   `xml:"uuid"`
			Address   string   `xml:"hostname"`
			Others    []string `xml:"hostnames>hostname"`
			Connected int      `xml:"connected"`
			State     string   `xml:"stateStr"`
		} `xml:"peerStatus>peer"`
	}
	if err := read(out, &x); err != nil {
		return nil, err
	}
	var peers []Peer
	for _, p := range x.Peers {
		others := slices.DeleteFunc(p.Others, func(o string) bool { return o == p.Address })
		if len(others) == 0 {
			others = nil
		}
		peers = append(peers, Peer{Address: p.Address, Others: others, UUID: p.UUID, Connected: p.Connected == 1, State: p.State})
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.Address, b.Address) })
	return peers, nil
}

// ParseVolumes reads 'volume info all'. The states of bricks are not in it.
func ParseVolumes(out []byte) ([]Volume, error) {
	var x struct {
		output
		Volumes []xmlVolume `xml:"volInfo>volumes>volume"`
	}
	if err := read(out, &x); err != nil {
		return nil, err
	}
	var volumes []Volume
	for i := range x.Volumes {
		volumes = append(volumes, x.Volumes[i].volume())
	}
	slices.SortFunc(volumes, func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
	return volumes, nil
}

type xmlVolume struct {
	Name       string `xml:"name"`
	ID         string `xml:"id"`
	State      string `xml:"statusStr"`
	Replica    int    `xml:"replicaCount"`
	Arbiter    int    `xml:"arbiterCount"`
	Disperse   int    `xml:"disperseCount"`
	Redundancy int    `xml:"redundancyCount"`
	Bricks     []struct {
		Name    string `xml:"name"`
		UUID    string `xml:"hostUuid"`
		Arbiter int    `xml:"isArbiter"`
	} `xml:"bricks>brick"`
	Options []struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	} `xml:"options>option"`
}

func (x *xmlVolume) volume() Volume {
	v := Volume{
		Name: x.Name, ID: x.ID, State: x.State, Replica: x.Replica, Arbiter: x.Arbiter,
		Disperse: x.Disperse, Redundancy: x.Redundancy, Options: map[string]string{},
	}
	for _, b := range x.Bricks {
		address, path := SplitBrick(b.Name)
		v.Bricks = append(v.Bricks, Brick{Address: address, UUID: b.UUID, Path: path, Arbiter: b.Arbiter == 1})
	}
	for _, o := range x.Options {
		v.Options[o.Name] = o.Value
	}
	return v
}

// SplitBrick takes address:path apart. An IPv6 address has colons of its own, a path begins with a slash.
func SplitBrick(name string) (address, path string) {
	address, path, ok := strings.Cut(name, ":/")
	if !ok {
		return name, ""
	}
	return address, "/" + path
}

// AddStatus reads 'volume status all' into the volumes: which bricks serve, and what task goes on. A started volume's brick that
// is not listed there stays BrickUnknown: nobody heard of its node's glusterd.
func AddStatus(volumes []Volume, out []byte) error {
	var x struct {
		output
		Volumes []struct {
			Name  string `xml:"volName"`
			Nodes []struct {
				Address string `xml:"hostname"`
				Path    string `xml:"path"`
				Status  int    `xml:"status"`
			} `xml:"node"`
			Tasks []struct {
				Kind   string   `xml:"type"`
				ID     string   `xml:"id"`
				State  string   `xml:"statusStr"`
				Bricks []string `xml:"params>brick"`
			} `xml:"tasks>task"`
		} `xml:"volStatus>volumes>volume"`
	}
	if err := read(out, &x); err != nil {
		return err
	}
	for _, s := range x.Volumes {
		i := slices.IndexFunc(volumes, func(v Volume) bool { return v.Name == s.Name })
		if i < 0 {
			continue
		}
		v := &volumes[i]
		for _, n := range s.Nodes {
			if b := v.Brick(n.Address + ":" + n.Path); b != nil {
				b.State = map[bool]BrickState{true: BrickOnline, false: BrickOffline}[n.Status == 1]
			}
			if n.Address == selfHealDaemon && n.Status != 1 {
				v.HealersDown = append(v.HealersDown, n.Path)
			}
		}
		for _, t := range s.Tasks {
			v.Task = &Task{Kind: t.Kind, ID: t.ID, State: t.State, Bricks: t.Bricks}
			for _, name := range t.Bricks {
				if b := v.Brick(name); b != nil {
					b.Leaving = true
				}
			}
		}
	}
	return nil
}

// selfHealDaemon is what 'volume status' has in the place of an address, for the daemon that heals.
const selfHealDaemon = "Self-heal Daemon"

// Brick is the volume's brick of that name (address:path), or nil.
func (v *Volume) Brick(name string) *Brick {
	for i := range v.Bricks {
		if v.Bricks[i].Name() == name {
			return &v.Bricks[i]
		}
	}
	return nil
}

// AddTask reads 'volume rebalance … status' or 'volume remove-brick … status' into the volume's task.
func AddTask(v *Volume, out []byte) error {
	type aggregate struct {
		Failures int64  `xml:"failures"`
		State    string `xml:"statusStr"`
	}
	var x struct {
		output
		Rebalance *aggregate `xml:"volRebalance>aggregate"`
		Remove    *aggregate `xml:"volRemoveBrick>aggregate"`
	}
	if err := read(out, &x); err != nil {
		return err
	}
	if a := cmp.Or(x.Rebalance, x.Remove); a != nil && v.Task != nil {
		v.Task.Failures, v.Task.State = a.Failures, cmp.Or(a.State, v.Task.State)
	}
	return nil
}

// AddHeals reads 'volume heal … info summary' into the volume's bricks. Of a brick that does not answer the program prints its
// counters into the text of the status, and no number means anything: such a brick's Heal stays nil.
func AddHeals(v *Volume, out []byte) error {
	var x struct {
		output
		Bricks []struct {
			Name       string `xml:"name"`
			Status     string `xml:"status"`
			Total      string `xml:"totalNumberOfEntries"`
			SplitBrain string `xml:"numberOfEntriesInSplitBrain"`
		} `xml:"healInfo>bricks>brick"`
	}
	if err := read(out, &x); err != nil {
		return err
	}
	for _, h := range x.Bricks {
		b := v.Brick(h.Name)
		total, err := strconv.ParseInt(h.Total, 10, 64)
		if b == nil || h.Status != "Connected" || err != nil {
			continue
		}
		split, err := strconv.ParseInt(h.SplitBrain, 10, 64)
		if err != nil {
			continue
		}
		b.Heal = &Heal{Pending: round(total - split), SplitBrain: round(split)}
		if b.State == BrickUnknown { // it was asked as clients ask, whatever the glusterds know of each other
			b.State = BrickOnline
		}
	}
	return nil
}

// round keeps the two first digits of a count, and tells none from some.
func round(n int64) int64 {
	step := int64(1)
	for n/step >= 100 {
		step *= 10
	}
	return n / step * step
}

// maxSplitFiles bounds the files in split-brain that are told of.
const maxSplitFiles = 16

// AddSplitBrains reads 'volume heal … info split-brain' into the volume's bricks. The same file is known to one brick by its
// path and to another by its gfid alone; paths come first.
func AddSplitBrains(v *Volume, out []byte) error {
	var x struct {
		output
		Bricks []struct {
			Name  string   `xml:"name"`
			Files []string `xml:"file"`
		} `xml:"healInfo>bricks>brick"`
	}
	if err := read(out, &x); err != nil {
		return err
	}
	for _, s := range x.Bricks {
		b := v.Brick(s.Name)
		if b == nil || b.Heal == nil || len(s.Files) == 0 {
			continue
		}
		slices.Sort(s.Files) // paths begin with a slash, gfids with a "<"
		b.Heal.Files = s.Files[:min(len(s.Files), maxSplitFiles)]
	}
	return nil
}

// ParseOpVersion reads 'volume get all cluster.op-version' or 'cluster.max-op-version'.
func ParseOpVersion(out []byte) (int, error) {
	var x struct {
		output
		Values []string `xml:"volGetopts>Opt>Value"`
	}
	if err := read(out, &x); err != nil {
		return 0, err
	}
	if len(x.Values) != 1 {
		return 0, fmt.Errorf("%w: it returned %d values for one option", ErrNoAnswer, len(x.Values))
	}
	n, err := strconv.Atoi(x.Values[0])
	if err != nil {
		return 0, fmt.Errorf("%w: the operating version %q is not a number", ErrNoAnswer, x.Values[0])
	}
	return n, nil
}
