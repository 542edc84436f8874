package command

// Lines are all objects that --json prints.
var Lines = []any{
	journalLine{},
	tableLine{},
	headLine{},
	snapshotLine{},
	eventLine{},
	aggregateName{},
	faultLine{},
	reportLine{},
	archiveLine{},
	groupLine{},
	lagLine{},
	groupShardLine{},
	behindLine{},
	editedLine{},
	removedLine{},
}
