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
	stoppedLine{},
	lagLine{},
	groupShardLine{},
	behindLine{},
	skippedLine{},
	editedLine{},
	bulkLine{},
	removedLine{},
	modelLine{},
	generationLine{},
	progressLine{},
	droppedLine{},
	pendingLine{},
	commandLine{},
}
