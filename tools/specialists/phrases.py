"""Pairs of Italian and English words and phrases, greetings, and what the model says of itself."""

# Italian|English, one pair a line.
PHRASES = """buongiorno|good morning
buonasera|good evening
buonanotte|good night
grazie mille|thank you very much
prego|you're welcome
per favore|please
mi dispiace|I am sorry
come stai?|how are you?
sto bene, grazie|I am fine, thank you
come ti chiami?|what is your name?
mi chiamo Anna|my name is Anna
dove abiti?|where do you live?
abito a Roma|I live in Rome
quanti anni hai?|how old are you?
che ora è?|what time is it?
che giorno è oggi?|what day is it today?
quanto costa?|how much does it cost?
il conto, per favore|the bill, please
dov'è la stazione?|where is the station?
dov'è il bagno?|where is the bathroom?
non capisco|I do not understand
può ripetere?|can you repeat?
parlo un po' di italiano|I speak a little Italian
ho fame|I am hungry
ho sete|I am thirsty
ho sonno|I am sleepy
fa freddo|it is cold
fa caldo|it is hot
piove|it is raining
c'è il sole|it is sunny
a domani|see you tomorrow
a presto|see you soon
buon viaggio|have a good trip
buon appetito|enjoy your meal
buon compleanno|happy birthday
auguri|best wishes
ti voglio bene|I love you
va bene|all right
non importa|it does not matter
che bello!|how nice!
ho perso il treno|I missed the train
il treno è in ritardo|the train is late
vorrei un caffè|I would like a coffee
vorrei un bicchiere d'acqua|I would like a glass of water
vorrei prenotare un tavolo|I would like to book a table
ho una prenotazione|I have a reservation
il libro è sul tavolo|the book is on the table
la porta è aperta|the door is open
la finestra è chiusa|the window is closed
il gatto dorme|the cat is sleeping
il cane corre|the dog is running
la casa è grande|the house is big
la strada è lunga|the road is long
il mare è calmo|the sea is calm
la montagna è alta|the mountain is high
mio fratello lavora a Milano|my brother works in Milan
mia sorella studia medicina|my sister studies medicine
mio padre legge il giornale|my father reads the newspaper
mia madre cucina bene|my mother cooks well
i bambini giocano nel parco|the children play in the park
oggi è lunedì|today is Monday
domani è festa|tomorrow is a holiday
ieri sono andato al cinema|yesterday I went to the cinema
la riunione comincia alle nove|the meeting starts at nine
il negozio chiude alle otto|the shop closes at eight
ho bisogno di aiuto|I need help
chiamate un medico|call a doctor
ho perso le chiavi|I lost my keys
il telefono non funziona|the phone does not work
la batteria è scarica|the battery is empty
mandami una mail|send me an e-mail
scrivi il tuo nome|write your name
leggi questa pagina|read this page
apri la finestra|open the window
chiudi la porta|close the door
aspetta un momento|wait a moment
sono stanco|I am tired
sono felice|I am happy
hai ragione|you are right
non sono d'accordo|I do not agree
mi piace la musica|I like music
non mi piace il caffè|I do not like coffee
il film è bello|the film is good
il tempo passa|time passes
la vita è bella|life is beautiful"""

WORDS = """acqua|water
pane|bread
vino|wine
latte|milk
mela|apple
pera|pear
uva|grapes
arancia|orange
formaggio|cheese
carne|meat
pesce|fish
uovo|egg
sale|salt
zucchero|sugar
casa|house
porta|door
finestra|window
tavolo|table
sedia|chair
letto|bed
libro|book
penna|pen
carta|paper
lettera|letter
scuola|school
città|city
strada|street
ponte|bridge
chiesa|church
mare|sea
monte|mountain
fiume|river
lago|lake
albero|tree
fiore|flower
erba|grass
cielo|sky
sole|sun
luna|moon
stella|star
pioggia|rain
neve|snow
vento|wind
fuoco|fire
terra|earth
cane|dog
gatto|cat
cavallo|horse
uccello|bird
mucca|cow
padre|father
madre|mother
fratello|brother
sorella|sister
figlio|son
figlia|daughter
amico|friend
uomo|man
donna|woman
bambino|child
medico|doctor
mano|hand
testa|head
occhio|eye
cuore|heart
piede|foot
giorno|day
notte|night
settimana|week
mese|month
anno|year
ora|hour
tempo|time
lavoro|work
denaro|money
treno|train
aereo|plane
nave|ship
macchina|car
bicicletta|bicycle
rosso|red
verde|green
giallo|yellow
nero|black
bianco|white
azzurro|light blue
grande|big
piccolo|small
nuovo|new
vecchio|old
bello|beautiful
brutto|ugly
alto|high
basso|low
lungo|long
corto|short
caldo|hot
freddo|cold
buono|good
cattivo|bad
veloce|fast
lento|slow
facile|easy
difficile|difficult
mangiare|to eat
bere|to drink
dormire|to sleep
leggere|to read
scrivere|to write
parlare|to speak
ascoltare|to listen
vedere|to see
camminare|to walk
correre|to run
aprire|to open
chiudere|to close
comprare|to buy
vendere|to sell
pagare|to pay
aiutare|to help"""

OPPOSITES = {'it': 'alto|basso;grande|piccolo;lungo|corto;caldo|freddo;nuovo|vecchio;bello|brutto;buono|cattivo;veloce|lento;'
                   'facile|difficile;aperto|chiuso;pieno|vuoto;ricco|povero;forte|debole;chiaro|scuro;dentro|fuori;sopra|sotto;'
                   'vicino|lontano;primo|ultimo;vero|falso;giorno|notte',
             'en': 'high|low;big|small;long|short;hot|cold;new|old;good|bad;fast|slow;easy|difficult;open|closed;full|empty;'
                   'rich|poor;strong|weak;light|dark;inside|outside;above|below;near|far;first|last;true|false;day|night;up|down'}

# What is said -> what may be answered. {me}: the model's name.
GREETINGS = {
    'it': [(['Ciao', 'Ciao!', 'Ehi', 'Salve', 'Ciao Molly', 'Buongiorno', 'Buonasera', 'Salve a te'],
            ['Ciao! Come posso aiutarti?', 'Ciao, dimmi pure.', 'Buongiorno! Che cosa ti serve?']),
           (['Chi sei?', 'Come ti chiami?', 'Che cosa sei?', 'Sei una persona?', 'Con chi parlo?', 'Presentati', 'Sei un robot?', 'Qual è il tuo nome?'],
            ['Sono {me}, un piccolo modello linguistico che gira su questo dispositivo.',
             'Mi chiamo {me}: sono un modello piccolo e lavoro qui, sul tuo dispositivo.']),
           (['Che cosa sai fare?', 'A che cosa servi?', 'In che cosa puoi aiutarmi?', 'Quali sono le tue capacità?'],
            ['So classificare brevi testi, estrarre dati in JSON, capire date e numeri e rispondere a domande semplici. Per il resto serve un modello più grande.']),
           (['Grazie', 'Grazie mille', 'Ti ringrazio', 'Molto gentile', 'Perfetto, grazie'], ['Prego!', 'Di niente.', 'Figurati!']),
           (['Ciao, a domani', 'Arrivederci', 'Buonanotte', 'A presto', 'Ci sentiamo'], ['A presto!', 'Arrivederci!', 'Buona giornata!']),
           (['Come stai?', 'Come va?', 'Tutto bene?'], ['Tutto bene, grazie. E tu?', 'Bene, grazie! Come posso aiutarti?']),
           (['I miei dati escono da qui?', 'Mandi i miei dati in rete?', 'Dove vengono elaborate le mie richieste?'],
            ['Io lavoro su questo dispositivo: quello che scrivi a me resta qui.'])],
    'en': [(['Hi', 'Hello', 'Hey', 'Hi Molly', 'Good morning', 'Good evening', 'Hello there', 'Hi!'],
            ['Hello! How can I help?', 'Hi, what do you need?', 'Good morning! What can I do for you?']),
           (['Who are you?', 'What is your name?', 'What are you?', 'Are you a person?', 'Introduce yourself', 'Are you a robot?', 'Who am I talking to?'],
            ['I am {me}, a small language model that runs on this device.', 'My name is {me}: a small model that works here, on your device.']),
           (['What can you do?', 'What are you for?', 'How can you help me?', 'What are your skills?'],
            ['I can classify short texts, extract fields as JSON, read dates and numbers and answer simple questions. For the rest you need a larger model.']),
           (['Thanks', 'Thank you', 'Thanks a lot', 'Very kind', 'Perfect, thanks'], ["You're welcome!", 'Not at all.', 'My pleasure.']),
           (['Bye', 'See you tomorrow', 'Good night', 'See you soon', 'Goodbye'], ['See you soon!', 'Goodbye!', 'Have a nice day!']),
           (['How are you?', 'How is it going?', 'Are you well?'], ['Fine, thank you. And you?', 'Fine, thanks! How can I help?']),
           (['Do my texts leave this machine?', 'Do you send my data anywhere?', 'Where do you run?'],
            ['I run on this device: what you write to me stays here.'])]}

# What a model of this size must not pretend to know.
TOO_HARD = {
    'it': ['Chi ha vinto {x}?', 'Spiegami {x}', 'Scrivi un saggio su {x}', 'Qual è la terapia per {x}?', 'Dimostra il teorema su {x}',
           'Scrivi un programma su {x}', 'Che cosa dice la legge su {x}?', 'Raccontami la storia di {x}', 'Quali sono le ultime notizie su {x}?'],
    'en': ['Who won {x}?', 'Explain {x}', 'Write an essay about {x}', 'What is the treatment for {x}?', 'Prove the theorem about {x}',
           'Write a program about {x}', 'What does the law say about {x}?', 'Tell me the history of {x}', 'What is the latest news about {x}?']}
SUBJECTS = {
    'it': 'la relatività;il diabete;la Rivoluzione francese;il mercato azionario;le reti neurali;il Nobel;la mitosi;il Risorgimento;'
          'il diritto di recesso;i buchi neri;la crisi del 1929;il campionato;la fotosintesi;la filosofia di Kant;la bolletta elettrica;'
          'il cambio euro dollaro;la guerra fredda;il genoma;le tasse sulla casa;i numeri primi'.split(';'),
    'en': 'relativity;diabetes;the French Revolution;the stock market;neural networks;the Nobel prize;mitosis;the Cold War;'
          'consumer rights;black holes;the crisis of 1929;the championship;photosynthesis;Kant;the electricity bill;exchange rates;'
          'the Roman empire;the genome;house taxes;prime numbers'.split(';')}
ESCALATE = {'it': ['Non lo so con certezza: per questa domanda serve un modello più grande.',
                   'È oltre le mie capacità: chiedi a un modello più grande.'],
            'en': ['I do not know for certain: this question needs a larger model.',
                   'That is beyond me: ask a larger model.']}


def pairs(text):
    return [tuple(line.split('|')) for line in text.splitlines()]


def opposites(language):
    return [tuple(pair.split('|')) for pair in OPPOSITES[language].split(';')]
