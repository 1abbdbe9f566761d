package torus

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// ParsePeers reads 'torusctl list-peers --csv', and says whether a peer tells that it moves blocks. That none does means nothing: a
// torusd that moves blocks says "0 B/sec" but for the moment after each of its rounds. Lines are:
//
//	http://10.0.0.1:40000,UUID,1.0 GiB,0 B,OK,4 seconds ago,0 B/sec
//	,UUID,???,???,DOWN,Missing,
func ParsePeers(text string) (peers []Peer, moving bool, err error) {
	rows, err := table(text, 7)
	if err != nil {
		return nil, false, fmt.Errorf("while reading Torus's list of peers: %w", err)
	}
	for _, r := range rows {
		p := Peer{Address: r[0], UUID: r[1], State: PeerState(r[4])}
		if p.State != PeerDown {
			size, errSize := humanize.ParseBytes(r[2])
			used, errUsed := humanize.ParseBytes(r[3])
			if errSize != nil || errUsed != nil {
				return nil, false, fmt.Errorf("while reading Torus's list of peers: sizes %q and %q of %s are none", r[2], r[3], p.UUID)
			}
			p.Size, p.Used = int64(size), int64(used)
			moving = moving || r[6] != "0 B/sec"
		}
		peers = append(peers, p)
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.UUID, b.UUID) })
	return peers, moving, nil
}

// ParseVolumes reads 'torusctl volume list --csv', whose lines are "vol1,100 MiB,block" up to
// v0.1.2; later builds add whether a client uses the volume: "vol1,100 MiB,block,free".
func ParseVolumes(text string) ([]Volume, error) {
	rows, err := table(text, 3)
	if err != nil {
		return nil, fmt.Errorf("while reading Torus's list of volumes: %w", err)
	}
	var volumes []Volume
	for _, r := range rows {
		volumes = append(volumes, Volume{Name: r[0], Size: r[1], InUse: len(r) > 3 && r[3] == "in-use"})
	}
	slices.SortFunc(volumes, func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
	return volumes, nil
}

func table(text string, columns int) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row) < columns {
			return nil, fmt.Errorf("%q has fewer than %d columns", strings.Join(row, ","), columns)
		}
	}
	return rows, nil
}

// ParseReplication reads the line "Replication:2" of 'torusctl ring get'; an empty ring has none, and 0 is returned.
func ParseReplication(text string) (int, error) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Replication:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				return 0, fmt.Errorf("while reading torusctl's line %q: %w", strings.TrimSpace(line), err)
			}
			return n, nil
		}
	}
	return 0, nil
}

// SizeText is a number of bytes in Torus's own writing.
func SizeText(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }

// SizeStep is by how much a size has to change for its text to change: Torus rounds it to a tenth of its unit below ten, and to the whole
// unit above.
func SizeStep(bytes int64) int64 {
	unit := int64(1)
	for bytes/unit >= 1024 {
		unit *= 1024
	}
	if unit > 1 && bytes/unit < 10 {
		return unit / 10
	}
	return unit
}
