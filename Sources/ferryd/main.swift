import FerryDaemon

FerryService.main()
